package mail

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"strconv"
	"strings"
	"time"
)

// smtpSender delivers by SMTP, with one connection per message.
type smtpSender struct {
	config Config
	tls    *tls.Config // nil: the system's roots and the host's name
}

func (s *smtpSender) Send(ctx context.Context, m Message) error {
	to, err := parseTo(m.To)
	if err != nil {
		return err
	}
	from, err := mail.ParseAddress(s.config.From)
	if err != nil {
		return fmt.Errorf("SMTP_FROM: %w", err)
	}
	data, err := compose(from, to, m, time.Now())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	if err := s.deliver(ctx, from.Address, to, data); err != nil {
		return fmt.Errorf("mail server %s: %w", s.config.Host, err)
	}
	return nil
}

func (s *smtpSender) deliver(ctx context.Context, from, to string, data []byte) error {
	tcp, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(s.config.Host, strconv.Itoa(s.config.Port)))
	if err != nil {
		return err
	}
	defer tcp.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := tcp.SetDeadline(deadline); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = tcp.Close() }) // the blocked read or write returns an error
	defer stop()
	conn := tcp
	if s.config.TLS == ImplicitTLS {
		conn = tls.Client(tcp, s.tlsConfig())
	}
	c, err := smtp.NewClient(conn, s.config.Host)
	if err != nil {
		return err
	}
	if s.config.TLS == StartTLS {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return errors.New("does not offer STARTTLS; set SMTP_TLS=tls for port 465, or SMTP_TLS=none if you trust the network up to the mail server")
		}
		if err := c.StartTLS(s.tlsConfig()); err != nil {
			return fmt.Errorf("STARTTLS: %w", err)
		}
	}
	if s.config.Username != "" {
		if err := c.Auth(smtp.PlainAuth("", s.config.Username, s.config.Password, s.config.Host)); err != nil {
			return fmt.Errorf("sign in: %w", err)
		}
	}
	if err := c.Mail(from); err != nil {
		return fmt.Errorf("sender %s: %w", from, err)
	}
	if err := c.Rcpt(to); err != nil {
		return fmt.Errorf("recipient: %w", err)
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	_ = c.Quit() // the message is accepted; the reply to QUIT does not matter
	return nil
}

func (s *smtpSender) tlsConfig() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.tls != nil {
		c = s.tls.Clone()
	}
	c.ServerName = s.config.Host
	return c
}

// compose builds the message (RFC 5322, MIME). No header can contain a line break: addresses are parsed, the subject is
// encoded.
func compose(from *mail.Address, to string, m Message, now time.Time) ([]byte, error) {
	if strings.ContainsAny(m.Subject, "\r\n\x00") {
		return nil, fmt.Errorf("mail subject %q contains a line break", m.Subject)
	}
	_, domain, _ := strings.Cut(from.Address, "@")
	var b bytes.Buffer
	for _, h := range [][2]string{
		{"From", from.String()},
		{"To", (&mail.Address{Address: to}).String()},
		{"Subject", mime.QEncoding.Encode("utf-8", m.Subject)},
		{"Date", now.Format(time.RFC1123Z)},
		{"Message-ID", "<" + rand.Text() + "@" + domain + ">"},
		{"Auto-Submitted", "auto-generated"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		b.WriteString(h[0] + ": " + h[1] + "\r\n")
	}
	b.WriteString("\r\n")
	q := quotedprintable.NewWriter(&b)
	if _, err := q.Write([]byte(m.Text)); err != nil {
		return nil, fmt.Errorf("mail text: %w", err)
	}
	if err := q.Close(); err != nil {
		return nil, fmt.Errorf("mail text: %w", err)
	}
	b.WriteString("\r\n")
	return b.Bytes(), nil
}
