package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

type status struct {
	SetupRequired bool `json:"setupRequired"`
}

var client = &http.Client{Timeout: 10 * time.Second}

// setupStatus asks the API whether it has an administrator.
func setupStatus(ctx context.Context, url string) (status, error) {
	var s status
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return s, err
	}
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

// signsIn checks whether the API accepts admin, a user:password, at the URL of an operation that requires a user.
func signsIn(ctx context.Context, url, admin string) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err
	}
	user, password, _ := strings.Cut(admin, ":")
	req.SetBasicAuth(user, password)
	res, err := client.Do(req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusUnauthorized, http.StatusForbidden: // or an account that is not active yet
		return false, nil
	}
	return false, fmt.Errorf("%s answers %s", url, res.Status)
}
