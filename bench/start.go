package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/longbox/longbox/localstack/build"
	"github.com/longbox/longbox/localstack/port"
)

const starts = 31

// start measures the size of the api function, and its time from exec to the first response, which has no bar here.
func start(ctx context.Context, s *system, out *report) error {
	for _, name := range []string{"api", "empty"} {
		if err := s.build(ctx, name); err != nil {
			return err
		}
	}
	var now, live, base []float64
	for range starts {
		for _, c := range []struct {
			name, path string
			status     int
			into       *[]float64
		}{{"empty", "/", 200, &base}, {"api", "/api/v1/auth/me", 401, &now}, {"api", "/health/live", 404, &live}} {
			took, err := s.startOnce(ctx, c.name, c.path, c.status)
			if err != nil {
				return err
			}
			*c.into = append(*c.into, took)
		}
	}
	out.ratio("api, exec to 401 (asks Postgres and Redis)", now, base, 0)
	out.ratio("api, exec to an answer without a look-up", live, base, 0)
	binary, zipped, err := s.sizes("api")
	if err != nil {
		return err
	}
	out.atMost("api binary", binary, 13, "MB")
	out.atMost("api zip", zipped, 5, "MB")
	return nil
}

// sizes returns the sizes of a program and of its deployment archive, in MB.
func (s *system) sizes(name string) (binary, zipped float64, err error) {
	path := filepath.Join(s.programs, name)
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	var b bytes.Buffer
	if err := build.Zip(&b, path); err != nil {
		return 0, 0, err
	}
	return float64(info.Size()) / 1e6, float64(b.Len()) / 1e6, nil
}

// startOnce returns the milliseconds from exec to the first response. It runs the program without the supervisor.
func (s *system) startOnce(ctx context.Context, name, path string, status int) (float64, error) {
	ports, err := port.Free(1)
	if err != nil {
		return 0, err
	}
	address := "127.0.0.1:" + strconv.Itoa(ports[0])
	cmd := exec.CommandContext(ctx, filepath.Join(s.programs, name))
	cmd.Env, cmd.Dir = s.spec(name, address).Env, s.dir
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	took, err := firstAnswer(ctx, client, "http://"+address+path, status, began)
	if stop := cmd.Process.Signal(syscall.SIGKILL); err == nil {
		err = stop
	}
	_ = cmd.Wait() // The error says that it was killed.
	return took, err
}

func firstAnswer(ctx context.Context, client *http.Client, url string, status int, began time.Time) (float64, error) {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return 0, err
		}
		res, err := client.Do(req)
		if err == nil {
			took := since(began)
			_, _ = io.Copy(io.Discard, res.Body) // The status has arrived, which is what counts.
			res.Body.Close()
			if res.StatusCode != status {
				return 0, fmt.Errorf("%s answers %s, not %d", url, res.Status, status)
			}
			return took, nil
		}
		if time.Since(began) > 10*time.Second {
			return 0, err
		}
		time.Sleep(100 * time.Microsecond)
	}
}
