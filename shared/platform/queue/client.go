package queue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Limits of a request.
const (
	attempts  = 3
	pause     = 100 * time.Millisecond
	timeout   = 5 * time.Second // excludes the wait of a long poll
	maxAnswer = 4 << 20         // ten messages of 256 KiB, escaped
)

// client sends signed requests in the JSON protocol.
type client struct {
	http     *http.Client
	signer   *v4.Signer
	region   string
	endpoint string
}

// Error is an error response of the service.
type Error struct {
	Status  int
	Code    string // for example QueueDoesNotExist
	Message string
}

func (e *Error) Error() string {
	return fmt.Sprintf("the queue answered %d %s: %s", e.Status, e.Code, e.Message)
}

func (e *Error) temporary() bool {
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests || strings.Contains(e.Code, "Throttl")
}

func newClient(c Config, queueURL string) *client {
	endpoint := c.Endpoint
	if endpoint == "" {
		u, _ := url.Parse(queueURL) // Validate has checked it
		endpoint = u.Scheme + "://" + u.Host
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 32
	return &client{http: &http.Client{Transport: transport}, signer: v4.NewSigner(), region: c.Region,
		endpoint: strings.TrimSuffix(endpoint, "/") + "/"}
}

// do sends one action and decodes its response into out.
func (c *client) do(ctx context.Context, action string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	for n := 1; ; n++ {
		err := c.once(ctx, action, body, out)
		var refused *Error
		switch {
		case err == nil:
			return nil
		case n == attempts, ctx.Err() != nil, errors.As(err, &refused) && !refused.temporary():
			return fmt.Errorf("%s: %w", action, err)
		}
		select {
		case <-time.After(pause << n):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", action, err)
		}
	}
}

func (c *client) once(ctx context.Context, action string, body []byte, out any) error {
	limit := timeout
	if action == "ReceiveMessage" {
		limit += 20 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	sum := sha256.Sum256(body)
	creds := aws.Credentials{AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: os.Getenv("AWS_SESSION_TOKEN")}
	if err := c.signer.SignHTTP(ctx, creds, req, hex.EncodeToString(sum[:]), "sqs", c.region, time.Now()); err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return refusal(res.StatusCode, data)
	}
	if err := json.Unmarshal(data, out); err != nil && len(bytes.TrimSpace(data)) > 0 {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// refusal decodes {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "..."}.
func refusal(status int, data []byte) error {
	var e struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	if json.Unmarshal(data, &e) != nil || e.Type == "" {
		e.Message = string(data[:min(len(data), 300)])
	}
	return &Error{Status: status, Code: e.Type[strings.LastIndex(e.Type, "#")+1:], Message: e.Message}
}
