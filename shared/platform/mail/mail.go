// Package mail delivers short plain-text messages by SMTP. Without an SMTP server it logs them, so that the links in
// them can be read on a machine without a mail server.
package mail

import (
	"context"
	"fmt"
	"log/slog"
	"net/mail"
	"time"
)

// Sender delivers messages.
type Sender interface {
	// Send delivers one message before it returns, or fails.
	Send(ctx context.Context, m Message) error
}

// Message is one plain-text mail.
type Message struct {
	To      string // a bare address
	Subject string
	Text    string
}

// Encryption of the connection to the SMTP server.
const (
	StartTLS    = "starttls" // upgraded before anything else is sent; an error if the server cannot
	ImplicitTLS = "tls"      // from the first byte, usually port 465
	Plain       = "none"     // for a relay on the same machine or network
)

// Config names the SMTP server. Without a host, messages are logged.
type Config struct {
	Host     string        `env:"SMTP_HOST"`
	Port     int           `env:"SMTP_PORT" envDefault:"587"`
	Username string        `env:"SMTP_USERNAME"`
	Password string        `env:"SMTP_PASSWORD"`
	From     string        `env:"SMTP_FROM"`
	TLS      string        `env:"SMTP_TLS" envDefault:"starttls"`
	Timeout  time.Duration `env:"SMTP_TIMEOUT" envDefault:"15s"`
}

// Validate returns an error that names the invalid setting.
func (c Config) Validate() error {
	if c.Host == "" {
		return nil
	}
	if c.Port < 1 || c.Port > 65535 {
		return fmt.Errorf("SMTP_PORT: must be 1 to 65535, is %d", c.Port)
	}
	if a, err := mail.ParseAddress(c.From); err != nil || a.Address == "" {
		return fmt.Errorf("SMTP_FROM: must be the address that messages come from, for example library@example.org, is %q", c.From)
	}
	switch c.TLS {
	case StartTLS, ImplicitTLS, Plain:
	default:
		return fmt.Errorf("SMTP_TLS: must be %s, %s or %s, is %q", StartTLS, ImplicitTLS, Plain, c.TLS)
	}
	if c.Username != "" && c.TLS == Plain {
		return fmt.Errorf("SMTP_TLS: a user name and password are not sent unencrypted; use %s or %s", StartTLS, ImplicitTLS)
	}
	if c.Timeout < time.Second || c.Timeout > time.Minute {
		return fmt.Errorf("SMTP_TIMEOUT: must be 1s to 1m, is %s", c.Timeout)
	}
	return nil
}

// New returns the Sender for the configuration.
func New(c Config) (Sender, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Host == "" {
		return logSender{}, nil
	}
	return &smtpSender{config: c}, nil
}

// logSender logs messages, on machines without a mail server. They are warnings, but are written at any LOG_LEVEL,
// because the log is the only place of their links.
type logSender struct{}

func (logSender) Send(ctx context.Context, m Message) error {
	if _, err := parseTo(m.To); err != nil {
		return err
	}
	line := slog.NewRecord(time.Now(), slog.LevelWarn, "mail is not sent because SMTP_HOST is not set", 0)
	line.AddAttrs(slog.String("to", m.To), slog.String("subject", m.Subject), slog.String("text", m.Text))
	return slog.Default().Handler().Handle(ctx, line) // which does not look at the level
}

func parseTo(to string) (string, error) {
	a, err := mail.ParseAddress(to)
	if err != nil {
		return "", fmt.Errorf("mail to %q: %w", to, err)
	}
	if a.Address != to {
		return "", fmt.Errorf("mail to %q: not a bare address", to)
	}
	return a.Address, nil
}
