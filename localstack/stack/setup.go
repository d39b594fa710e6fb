package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

type status struct {
	SetupRequired bool `json:"setupRequired"`
}

// setupStatus asks the API whether it has an administrator.
func setupStatus(ctx context.Context, url string) (status, error) {
	var s status
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return s, err
	}
	client := &http.Client{Timeout: 10 * time.Second}
	res, err := client.Do(req)
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return s, fmt.Errorf("%s answers %s", url, res.Status)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&s); err != nil {
		return s, fmt.Errorf("%s: %w", url, err)
	}
	return s, nil
}
