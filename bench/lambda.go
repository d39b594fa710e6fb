package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/longbox/longbox/shared/testkit/lambdakit"
)

const (
	coldStarts = 31
	warm       = 100

	imageOfMedia = "media's image"
)

var mediaImage = os.Getenv("MEDIA_IMAGE")

// lambda measures the functions under the Lambda runtime API: start, size, memory. media is deployed as an image with a
// third of the libraries of Debian's libvips. MEDIA_IMAGE, a folder, measures that image. Create it as root:
//
//	mkdir image; docker export "$(docker create IMAGE)" | tar -x -C image
func lambda(ctx context.Context, s *system, out *report) error {
	names := []string{"empty", "api", "media", "worker", "scheduler", "operator", "migrate"}
	for _, name := range names {
		if err := s.build(ctx, name); err != nil {
			return err
		}
	}
	inits, started := map[string][]float64{}, names
	bars := map[string]float64{"api": 1.8, "media": 10}
	if mediaImage != "" {
		started = append(slices.Clone(names), imageOfMedia)
		bars = map[string]float64{"api": 1.8, imageOfMedia: 10}
	}
	for range coldStarts {
		for _, name := range started {
			took, err := s.coldStart(ctx, name)
			if err != nil {
				return err
			}
			inits[name] = append(inits[name], took)
		}
	}
	for _, name := range started[1:] {
		out.ratio(name+", process start to first next", inits[name], inits["empty"], bars[name])
	}
	for _, name := range names[1:] {
		n, err := s.connectsAtInit(ctx, name)
		if err != nil {
			return err
		}
		out.atMost(name+", connections at init", float64(n), 0, "")
	}
	for _, name := range names {
		binary, zipped, err := s.sizes(name)
		if err != nil {
			return err
		}
		out.info(name+" binary", binary, "MB")
		if name == "api" {
			out.atMost(name+" zip", zipped, 5, "MB")
		} else {
			out.info(name+" zip", zipped, "MB")
		}
	}
	if err := s.warmMemory(ctx, out); err != nil {
		return err
	}
	return s.byPackage(ctx, out)
}

// program returns a function with the settings of this system.
func (s *system) program(name string) lambdakit.Program {
	p := lambdakit.Program{Name: name, Path: filepath.Join(s.programs, name), Timeout: time.Minute}
	if name == imageOfMedia {
		name, p.Root, p.Path = "media", mediaImage, "/bootstrap"
	}
	for _, e := range append(s.spec(name, "127.0.0.1:0").Env, "DATABASE_OWNER_URL="+s.postgres.OwnerURL()) {
		if !strings.HasPrefix(e, "PATH=") && !strings.HasPrefix(e, "TZ=") {
			p.Env = append(p.Env, e)
		}
	}
	return p
}

func (s *system) coldStart(ctx context.Context, name string) (float64, error) {
	sandbox, err := lambdakit.Start(ctx, s.program(name))
	if err != nil {
		return 0, err
	}
	sandbox.Close()
	return float64(sandbox.Init.Nanoseconds()) / 1e6, nil
}

// connectsAtInit counts the connections that a function opens to services before its first invocation. Its settings
// lead all of them to the benchmark.
func (s *system) connectsAtInit(ctx context.Context, name string) (int, error) {
	trap := newTrap()
	defer trap.Close()
	p := s.program(name)
	host := strings.TrimPrefix(trap.URL, "http://")
	p.Env = append(p.Env, "DATABASE_URL=postgres://u:p@"+host+"/d", "DATABASE_SYSTEM_URL=postgres://u:p@"+host+"/d",
		"DATABASE_OWNER_URL=postgres://u:p@"+host+"/d", "REDIS_URL=redis://"+host, "MEDIA_S3_ENDPOINT="+trap.URL,
		"LIBRARY_S3_ENDPOINT="+trap.URL, "SMTP_HOST=127.0.0.1", "SMTP_FROM=longbox@example.org", "SMTP_PORT="+host[strings.LastIndex(host, ":")+1:])
	p.Thawed = true
	sandbox, err := lambdakit.Start(ctx, p)
	if err != nil {
		return 0, err
	}
	defer sandbox.Close()
	time.Sleep(200 * time.Millisecond) // for goroutines of the start
	return trap.count(), nil
}

// warmMemory reports the resident memory of api and media after 100 requests.
func (s *system) warmMemory(ctx context.Context, out *report) error {
	for name, g := range map[string]lambdakit.Gateway{"api": lambdakit.HTTPAPI, "media": lambdakit.FunctionURL} {
		f := lambdakit.New(s.program(name), 1)
		defer f.Close()
		front := httptest.NewServer(&lambdakit.Front{Function: f, Gateway: g})
		defer front.Close()
		c := newClient(s.token)
		var times []float64
		for i := range warm {
			path := []string{"/api/v1/books", "/api/v1/series", "/api/v1/libraries", "/api/v1/auth/me"}[i%4]
			if name == "media" {
				path = "/api/v1/books/00000000-0000-4000-8000-000000000000/pages/1"
			}
			req, err := c.request(ctx, http.MethodGet, front.URL+path, nil)
			if err != nil {
				return err
			}
			began := time.Now()
			res, err := c.http.Do(req)
			if err != nil {
				return err
			}
			res.Body.Close()
			times = append(times, since(began))
			if want := map[string]int{"api": 200, "media": 404}[name]; res.StatusCode != want {
				return fmt.Errorf("%s %s answers %s", name, path, res.Status)
			}
		}
		for _, pid := range f.PIDs() {
			mb, err := memory(pid, "VmRSS")
			if err != nil {
				return err
			}
			out.info(fmt.Sprintf("%s, resident after %d requests", name, warm), mb, "MB")
		}
		out.info(name+", first request through the front", times[0], "ms")
		out.info(name+", warm request through the front", median(times[1:]), "ms")
	}
	return s.roundMemory(ctx, out)
}

// roundMemory does the same for the scheduler's rounds.
func (s *system) roundMemory(ctx context.Context, out *report) error {
	sandbox, err := lambdakit.Start(ctx, s.program("scheduler"))
	if err != nil {
		return err
	}
	defer sandbox.Close()
	event, err := json.Marshal(lambdakit.ScheduleEvent("every-minute", time.Now()))
	if err != nil {
		return err
	}
	for range warm {
		if _, err := sandbox.Invoke(ctx, event); err != nil {
			return err
		}
	}
	mb, err := memory(sandbox.PID(), "VmRSS")
	if err != nil {
		return err
	}
	out.info(fmt.Sprintf("scheduler, resident after %d rounds", warm), mb, "MB")
	return nil
}

// byPackage reports the packages that account for the size of the api, beyond that of the empty function.
func (s *system) byPackage(ctx context.Context, out *report) error {
	api, err := s.symbols(ctx, "api")
	if err != nil {
		return err
	}
	empty, err := s.symbols(ctx, "empty")
	if err != nil {
		return err
	}
	for _, p := range above(api, empty, 12) {
		out.info("api above empty: "+p.name, float64(p.bytes)/1e3, "kB")
	}
	return nil
}

// symbols returns the bytes of code and data per module or standard library package.
func (s *system) symbols(ctx context.Context, name string) (map[string]int, error) {
	binary := filepath.Join(s.programs, name+".symbols")
	if err := s.compile(ctx, name, binary, "-ldflags="); err != nil {
		return nil, err
	}
	raw, err := exec.CommandContext(ctx, "go", "tool", "nm", "-size", binary).Output()
	if err != nil {
		return nil, fmt.Errorf("go tool nm: %w", err)
	}
	return bySymbol(string(raw)), nil
}
