package lambdahttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/lambdahttp"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/lambdakit"
)

// Buffered and streamed responses end before the invocation does.
func TestTimeIsKept(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"HTTP API", "function URL"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gateways[name]
			f := &lambdakit.Front{Gateway: g.gateway, Failed: func(err error) { t.Error(err) }}
			url, _ := front(t, f, g.role, 4*time.Second)
			for path, want := range map[string]int{"/slow": 504, "/stuck": 503} {
				began := time.Now()
				res, raw := ask(t, url, "GET", path, nil, nil)
				if took := time.Since(began); res.StatusCode != want || took < 2*time.Second { // at 4 s the process would be killed
					t.Errorf("%s: status %d after %s: %s", path, res.StatusCode, took, raw)
				} else if want == 503 && (res.Header.Get("Retry-After") == "" || !strings.Contains(string(raw), "took too long")) {
					t.Errorf("%s: %v %s", path, res.Header, raw)
				}
			}
			if res, _ := ask(t, url, "GET", "/nothing", nil, nil); res.StatusCode != 200 {
				t.Errorf("afterwards: status %d", res.StatusCode)
			}
			if n := len(f.Function.Inits()); n != 1 {
				t.Errorf("%d processes were needed", n)
			}
		})
	}
}

func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	var failed []error
	f := &lambdakit.Front{Gateway: lambdakit.FunctionURL, Failed: func(err error) { failed = append(failed, err) }}
	url, _ := front(t, f, "stream", time.Minute)
	if _, raw := ask(t, url, "GET", "/bytes?n=20000000", nil, nil); !bytes.Equal(raw, pattern(0, 20_000_000)) || failed != nil {
		t.Errorf("streamed: %d bytes, %v", len(raw), failed)
	}
	buffered := &lambdakit.Front{Gateway: lambdakit.HTTPAPI, Failed: func(err error) { failed = append(failed, err) }}
	url, out := front(t, buffered, "serve", time.Minute)
	res, raw := ask(t, url, "GET", "/bytes?n=5000000", nil, nil)
	if res.StatusCode != 400 || !strings.Contains(string(raw), "ask for less at once") || failed != nil {
		t.Errorf("an answer that is too large: status %d, %.300s, %v", res.StatusCode, raw, failed)
	}
	testkit.Eventually(t, 10*time.Second, func() bool { return out.count("path=/bytes bytes=6666") == 1 })
}

// An interrupted streamed response never looks complete, whoever interrupts it.
func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	for path, message := range map[string]string{"/abort": "broke off", "/stuck-body": "longer than the invocation"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			var failed []error
			f := &lambdakit.Front{Gateway: lambdakit.FunctionURL, Failed: func(err error) { failed = append(failed, err) }}
			url, out := front(t, f, "stream", 4*time.Second)
			res, err := http.Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if raw, err := io.ReadAll(res.Body); err == nil || len(raw) == 0 {
				t.Errorf("%d bytes arrived and %v", len(raw), err)
			}
			var fault *lambdakit.Fault
			if len(failed) != 1 || !errors.As(failed[0], &fault) || !strings.Contains(fault.Message, message) {
				t.Errorf("the runtime heard %v", failed)
			}
			if res, _ := ask(t, url, "GET", "/nothing", nil, nil); res.StatusCode != 200 || len(f.Function.Inits()) != 1 {
				t.Errorf("afterwards: status %d with process %d", res.StatusCode, len(f.Function.Inits()))
			}
			// The response does not wait for it.
			testkit.Eventually(t, 10*time.Second, func() bool { return out.count("after\n") == 2 })
		})
	}
}

func TestInvoke(t *testing.T) {
	t.Parallel()
	p, out := program(t, "invoke", 5*time.Second)
	s, err := lambdakit.Start(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for _, c := range []struct{ payload, answer, fault string }{
		{`{"a":1}`, `{"bounded":true,"got":{"a":1},"id":"00000000-0000-4000-8000-000000000001"}`, ""},
		{`"panic"`, "", "panic: on purpose"},
		{`"error"`, "", "no such thing"},
		{`null`, `{"bounded":true,"got":null,"id":"00000000-0000-4000-8000-000000000004"}`, ""},
	} {
		got, err := s.Invoke(context.Background(), []byte(c.payload))
		var fault *lambdakit.Fault
		if strings.TrimSpace(string(got)) != c.answer || (c.fault == "") != (err == nil) || err != nil && (!errors.As(err, &fault) || !strings.Contains(fault.Message, c.fault)) {
			t.Errorf("%s: %s, %v", c.payload, got, err)
		}
	}
	testkit.Eventually(t, 10*time.Second, func() bool { return out.count("after\n") == 4 })
}

func TestUnknownEvents(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"serve", "stream"} {
		p, _ := program(t, role, 5*time.Second)
		f := lambdakit.New(p, 1)
		t.Cleanup(f.Close)
		for _, payload := range []string{`{}`, `{"Records":[]}`, `{"version":"0","detail-type":"Scheduled Event"}`, `{"requestContext":null}`} {
			if got, err := f.Invoke(context.Background(), []byte(payload)); err == nil || !lambdakit.IsFault(err) {
				t.Errorf("%s: %s answers %s, %v", role, payload, got, err)
			}
		}
		if n := len(f.Inits()); n != 1 {
			t.Errorf("%s: %d processes were needed", role, n)
		}
	}
}

func TestStartThatFails(t *testing.T) {
	t.Parallel()
	p, out := program(t, "broken", 0)
	if s, err := lambdakit.Start(context.Background(), p); err == nil || !strings.Contains(err.Error(), "ended before its first invocation") {
		t.Errorf("%v, %v", s, err)
	}
	if n := out.count("SETTING: must be set"); n != 1 {
		t.Errorf("%d lines say why", n)
	}
	if err := lambdahttp.Invoke(nil, nil); err == nil || !strings.Contains(err.Error(), "AWS_LAMBDA_RUNTIME_API") {
		t.Errorf("outside of Lambda: %v", err)
	}
}

// Concurrent requests need several processes; no process handles two.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	p, _ := program(t, "serve", 5*time.Second)
	f := &lambdakit.Front{Gateway: lambdakit.HTTPAPI, Function: lambdakit.New(p, 3), Failed: func(err error) { t.Error(err) }}
	t.Cleanup(f.Function.Close)
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	done := make(chan int, 12)
	for range cap(done) {
		go func() {
			res, err := http.Get(s.URL + "/bytes?n=200000")
			if err != nil {
				t.Error(err)
				done <- 0
				return
			}
			defer res.Body.Close()
			raw, err := io.ReadAll(res.Body)
			if err != nil || !bytes.Equal(raw, pattern(0, 200_000)) {
				t.Errorf("%d bytes, %v", len(raw), err)
			}
			done <- res.StatusCode
		}()
	}
	for range cap(done) {
		if status := <-done; status != 200 {
			t.Errorf("status %d", status)
		}
	}
	if n := len(f.Function.Inits()); n < 2 || n > 3 {
		t.Errorf("%d processes for 12 requests at once, at most 3 allowed", n)
	}
}
