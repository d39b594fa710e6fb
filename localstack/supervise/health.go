package supervise

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Healthy returns a readiness probe: a GET of url must answer 200 within two seconds.
func Healthy(url string) func(context.Context) error {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(io.LimitReader(res.Body, 200))
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s: %s", url, res.Status, body)
		}
		return nil
	}
}
