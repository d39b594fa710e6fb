package mail

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/textproto"
	"strings"
	"testing"
	"time"
)

// server is an SMTP server of one connection.
type server struct {
	port     int
	cert     tls.Certificate
	roots    *x509.CertPool
	startTLS bool
	implicit bool
	mute     bool // says nothing at all
	refuse   bool // refuses the recipient

	done     chan struct{}
	said     []string
	data     []byte
	overTLS  bool
	authUser string
}

func start(t *testing.T, s *server) *smtpSender {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	s.cert = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	s.roots = x509.NewCertPool()
	s.roots.AddCert(parsed)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		conn, err := l.Accept()
		if err == nil {
			s.talk(conn)
		}
	}()
	t.Cleanup(func() { l.Close(); <-s.done })
	return &smtpSender{tls: &tls.Config{RootCAs: s.roots}, config: Config{Host: "localhost", Port: s.port,
		From: "Library <library@example.org>", TLS: StartTLS, Timeout: 10 * time.Second}}
}

func (s *server) talk(conn net.Conn) {
	defer func() { conn.Close() }()
	if s.mute {
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	if s.implicit {
		conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{s.cert}})
		s.overTLS = true
	}
	r := textproto.NewReader(bufio.NewReader(conn))
	say := func(format string, args ...any) { fmt.Fprintf(conn, format+"\r\n", args...) }
	say("220 localhost ready")
	for {
		line, err := r.ReadLine()
		if err != nil {
			return
		}
		s.said = append(s.said, line)
		word, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(word) {
		case "EHLO":
			say("250-localhost")
			if s.startTLS && !s.overTLS {
				say("250-STARTTLS")
			}
			say("250 AUTH PLAIN")
		case "STARTTLS":
			say("220 go on")
			conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{s.cert}})
			r = textproto.NewReader(bufio.NewReader(conn))
			s.overTLS = true
		case "AUTH":
			raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(rest, "PLAIN "))
			s.authUser = string(raw)
			say("235 welcome")
		case "RCPT":
			if s.refuse {
				say("550 no such mailbox")
				continue
			}
			say("250 ok")
		case "DATA":
			say("354 end with a dot")
			s.data, _ = io.ReadAll(r.DotReader())
			say("250 queued")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

func TestSMTPDelivers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		server server
		tls    string
		user   string
	}{
		{"starttls", server{startTLS: true}, StartTLS, "bob"},
		{"implicit", server{implicit: true}, ImplicitTLS, ""},
		{"plain", server{}, Plain, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := &c.server
			s := start(t, srv)
			s.config.TLS, s.config.Username, s.config.Password = c.tls, c.user, "secret"
			text := "Grüße,\nhttps://example.org/verify-email?token=abc=def\n.\nend " + strings.Repeat("x", 200)
			if err := s.Send(context.Background(), Message{To: "ann@example.org", Subject: "Bestätigen", Text: text}); err != nil {
				t.Fatal(err)
			}
			<-srv.done
			if srv.overTLS != (c.tls != Plain) {
				t.Errorf("over TLS: %v", srv.overTLS)
			}
			if c.user != "" && srv.authUser != "\x00bob\x00secret" {
				t.Errorf("signed in as %q", srv.authUser)
			}
			msg, err := mail.ReadMessage(bytes.NewReader(srv.data))
			if err != nil {
				t.Fatal(err)
			}
			subject, err := new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject"))
			if err != nil || subject != "Bestätigen" {
				t.Errorf("subject %q, %v", subject, err)
			}
			if to := msg.Header.Get("To"); to != "<ann@example.org>" {
				t.Errorf("to %q", to)
			}
			body, err := io.ReadAll(quotedprintable.NewReader(msg.Body))
			if err != nil || strings.TrimRight(strings.ReplaceAll(string(body), "\r\n", "\n"), "\n") != text {
				t.Errorf("text %q, %v", body, err)
			}
			if said := strings.Join(srv.said, "\n"); !strings.Contains(said, "MAIL FROM:<library@example.org>") ||
				!strings.Contains(said, "RCPT TO:<ann@example.org>") {
				t.Errorf("envelope: %s", said)
			}
		})
	}
}

func TestSMTPRefuses(t *testing.T) {
	t.Parallel()
	t.Run("no STARTTLS", func(t *testing.T) {
		t.Parallel()
		srv := &server{}
		s := start(t, srv)
		err := s.Send(context.Background(), Message{To: "ann@example.org", Subject: "x", Text: "secret link"})
		if err == nil || !strings.Contains(err.Error(), "STARTTLS") {
			t.Fatalf("error %v", err)
		}
		<-srv.done
		if len(srv.data) > 0 {
			t.Errorf("sent in the clear: %s", srv.data)
		}
	})
	t.Run("unknown certificate", func(t *testing.T) {
		t.Parallel()
		srv := &server{startTLS: true}
		s := start(t, srv)
		s.tls = nil
		if err := s.Send(context.Background(), Message{To: "ann@example.org", Text: "x"}); err == nil {
			t.Fatal("trusted a certificate that nobody signed")
		}
	})
	t.Run("recipient", func(t *testing.T) {
		t.Parallel()
		srv := &server{startTLS: true, refuse: true}
		s := start(t, srv)
		if err := s.Send(context.Background(), Message{To: "ann@example.org", Text: "x"}); err == nil || !strings.Contains(err.Error(), "no such mailbox") {
			t.Fatalf("error %v", err)
		}
	})
	for _, encryption := range []string{StartTLS, ImplicitTLS, Plain} {
		t.Run("cancelled, "+encryption, func(t *testing.T) {
			t.Parallel()
			srv := &server{mute: true}
			s := start(t, srv)
			s.config.TLS = encryption
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			if err := s.Send(ctx, Message{To: "ann@example.org", Text: "x"}); err == nil {
				t.Fatal("no error")
			}
		})
	}
}

func TestNoHeaderInjection(t *testing.T) {
	t.Parallel()
	for _, m := range []Message{
		{To: "ann@example.org\r\nBcc: all@example.org", Subject: "x"},
		{To: "Ann <ann@example.org>", Subject: "x"},
		{To: "ann@example.org, bob@example.org", Subject: "x"},
		{To: "", Subject: "x"},
	} {
		for _, s := range []Sender{&smtpSender{config: Config{Host: "127.0.0.1", Port: 1, From: "a@example.org", Timeout: time.Second}}, logSender{}} {
			if err := s.Send(context.Background(), m); err == nil || !strings.Contains(err.Error(), "mail to") {
				t.Errorf("%T took %q: %v", s, m.To, err)
			}
		}
	}
	if _, err := compose(&mail.Address{Address: "a@example.org"}, "b@example.org", Message{Subject: "x\r\nBcc: c@example.org"}, time.Now()); err == nil {
		t.Error("a subject with a line break went through")
	}
}

// The log is the only place of a link, so it holds the message whatever its level is.
func TestLogHoldsTheMessage(t *testing.T) {
	var out bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelError})))
	defer slog.SetDefault(old)
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(context.Background(), Message{To: "ann@example.org", Subject: "Hi", Text: "the link"}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "ann@example.org") || !strings.Contains(got, "the link") || !strings.Contains(got, `"level":"WARN"`) {
		t.Errorf("log: %s", got)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := Config{Host: "mail.example.org", Port: 587, From: "a@example.org", TLS: StartTLS, Timeout: time.Second}
	if s, err := New(good); err != nil {
		t.Fatal(err)
	} else if _, ok := s.(*smtpSender); !ok {
		t.Errorf("with a host: %T", s)
	}
	for _, c := range []struct {
		setting string
		change  func(*Config)
	}{
		{"SMTP_PORT", func(c *Config) { c.Port = 0 }},
		{"SMTP_FROM", func(c *Config) { c.From = "nobody" }},
		{"SMTP_TLS", func(c *Config) { c.TLS = "maybe" }},
		{"SMTP_TLS", func(c *Config) { c.TLS, c.Username = Plain, "bob" }},
		{"SMTP_TIMEOUT", func(c *Config) { c.Timeout = time.Hour }},
	} {
		bad := good
		c.change(&bad)
		if _, err := New(bad); err == nil || !strings.HasPrefix(err.Error(), c.setting+":") {
			t.Errorf("%s: %v", c.setting, err)
		}
	}
}
