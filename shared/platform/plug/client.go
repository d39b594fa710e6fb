package plug

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/longbox/longbox/shared/platform/environ"
)

// Config says how to reach the function plugin: not at all, by HTTP, or by its name in Lambda.
type Config struct {
	Commands Commands `env:"PLUGIN_COMMANDS" envSeparator:","`
	URL      string   `env:"PLUGIN_URL"`
	Token    string   `env:"PLUGIN_TOKEN"`
	Function string   `env:"PLUGIN_FUNCTION"`
	Region   string   `env:"AWS_REGION"`
	Endpoint string   `env:"PLUGIN_LAMBDA_ENDPOINT"` // of the Lambda API; empty: the region's
}

// Validate returns an error that names the invalid setting.
func (c Config) Validate() error {
	switch {
	case c.URL != "" && c.Function != "":
		return errors.New("PLUGIN_URL, PLUGIN_FUNCTION: set one of them")
	case c.URL != "" && c.Token == "":
		return errors.New("PLUGIN_TOKEN: must be set with PLUGIN_URL, to the same value as in the function plugin")
	case c.Function != "" && c.Region == "":
		return errors.New("AWS_REGION: must be set with PLUGIN_FUNCTION")
	case c.URL != "":
		return errors.Join(c.Commands.Validate(), environ.WebAddress("PLUGIN_URL", c.URL))
	}
	return c.Commands.Validate()
}

// errNowhere says why no plugin can be called.
var errNowhere = Failed(Unavailable, "Plugins are not run by this installation: neither PLUGIN_URL nor PLUGIN_FUNCTION is set")

// Client calls the function plugin.
type Client struct {
	Commands Commands
	keeps    bool
	send     func(ctx context.Context, tenant string, call []byte) (io.ReadCloser, error)
}

// New makes the Client for the configuration. Nothing connects before its first use.
func New(c Config) *Client {
	out := &Client{Commands: c.Commands}
	switch {
	case c.URL != "":
		out.send, out.keeps = overHTTP(c), true
	case c.Function != "":
		out.send = byLambda(c)
	}
	return out
}

// Runs reports whether plugins can be run at all.
func (c *Client) Runs() bool { return c != nil && c.send != nil }

// Ask sends a Call. The error is a *Fault: of the plugin, or Unavailable if the function was unreachable. If there is
// an Answer, it is returned even with an error, for its Changes.
func (c *Client) Ask(ctx context.Context, call Call) (*Answer, error) {
	if !c.Runs() {
		return nil, errNowhere
	}
	if at, ok := ctx.Deadline(); ok { // the function's error is more useful than this request's timeout
		call.Timeout = min(cmp.Or(call.Timeout, MaxTimeout), max(time.Until(at)-Margin, time.Second))
	}
	tenant := "fetch" // runs no plugin
	if call.Start != nil {
		tenant = call.Start.Tenant
	}
	data, err := json.Marshal(call)
	if err != nil {
		return nil, FaultOf(err)
	}
	if len(data) > MaxCall {
		return nil, Failed(Unavailable, "The request to the plugin is larger than %d bytes", MaxCall)
	}
	body, err := c.send(ctx, tenant, data)
	if err != nil {
		return nil, FaultOf(err)
	}
	defer body.Close()
	data, err = io.ReadAll(io.LimitReader(body, MaxAnswer+1))
	if err != nil {
		return nil, FaultOf(err)
	}
	if len(data) > MaxAnswer {
		return nil, Failed(ProcessEnded, "The answer of the plugin is larger than %d bytes", MaxAnswer)
	}
	out := &Answer{}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, FaultOf(fmt.Errorf("answer of the function plugin: %w", err))
	}
	if out.Fault != nil {
		return out, out.Fault
	}
	return out, nil
}

// overHTTP posts a call to the function, which runs as a server.
func overHTTP(c Config) func(ctx context.Context, tenant string, call []byte) (io.ReadCloser, error) {
	client := direct()
	return func(ctx context.Context, _ string, call []byte) (io.ReadCloser, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/call", bytes.NewReader(call))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+c.Token)
		r.Header.Set("Content-Type", "application/json")
		return answered(client.Do(r))
	}
}

// Margin is the time between the function's deadline and the end of the request.
const Margin = 2 * time.Second

// direct returns a client without proxy and redirects: calls contain credentials.
func direct() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	return &http.Client{Timeout: MaxTimeout + time.Minute, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// answered returns the body of a response, or an error for a refusal.
func answered(res *http.Response, err error) (io.ReadCloser, error) {
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK && res.Header.Get("X-Amz-Function-Error") == "" {
		return res.Body, nil
	}
	defer res.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(res.Body, 500)) // only for the log
	err = fmt.Errorf("the function plugin answers %s: %s", res.Status, said)
	if res.Header.Get("X-Amz-Function-Error") != "" { // it ran out of time or memory while it worked for the plugin
		return nil, &Fault{Code: ProcessEnded, Message: "The plugin used more time or memory than allowed", Err: err}
	}
	return nil, err
}
