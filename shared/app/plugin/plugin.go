// Package plugin wires functions/plugin, which runs the processes of plugins and uses nothing else of Longbox.
package plugin

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/plug/host"
)

// Config of the function.
type Config struct {
	Host     host.Config
	LogLevel slog.Level `env:"LOG_LEVEL" envDefault:"INFO"`
	Token    string     `env:"PLUGIN_TOKEN"` // required of callers; none in Lambda, where IAM decides who may invoke
}

// Function answers plugin calls.
type Function struct {
	Host  *host.Host
	token string
}

func New(c Config) (*Function, error) {
	h, err := host.New(c.Host)
	if err != nil {
		return nil, err
	}
	return &Function{h, c.Token}, nil
}

// Invoke answers one Lambda invocation: a plugin call.
func (f *Function) Invoke(ctx context.Context, payload json.RawMessage) (any, error) {
	var call plug.Call
	if err := json.Unmarshal(payload, &call); err != nil {
		return nil, err
	}
	return f.Host.Do(ctx, call), nil
}

// Handler answers plugin calls over HTTP: POST /call with the token, and GET /health.
func (f *Function) Handler() (http.Handler, error) {
	if f.token == "" {
		return nil, errors.New("PLUGIN_TOKEN: must be set; without it everybody on this machine could run programs")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n") // the client has left
	})
	mux.HandleFunc("POST /call", func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+f.token)) != 1 {
			http.Error(w, "the token is wrong", http.StatusUnauthorized)
			return
		}
		var call plug.Call
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, plug.MaxCall)).Decode(&call); err != nil {
			http.Error(w, "the call cannot be read: "+err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		// As the Lambda runtime does: the size that is counted is the size that is sent.
		e.SetEscapeHTML(false)
		_ = e.Encode(f.Host.Do(r.Context(), call)) // the client has left
	})
	return mux, nil
}
