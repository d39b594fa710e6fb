package host

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/plug"
)

// Only configured addresses may be in a private network, and never metadata addresses.
func TestAddressesThatMayBeAsked(t *testing.T) {
	t.Parallel()
	for _, a := range strings.Fields("127.0.0.1 10.1.2.3 192.168.1.1 fd12::1 ::1 93.184.216.34 2606:4700::1111") {
		if err := configured("tcp", netip.AddrPortFrom(netip.MustParseAddr(a), 8443).String(), nil); err != nil {
			t.Error(a, err)
		}
	}
	for _, a := range strings.Fields("169.254.169.254 ::ffff:169.254.169.254 fd00:ec2::254 168.63.129.16 100.100.100.200 0.0.0.0 :: 224.0.0.1 ff02::1 fe80::1 255.255.255.255") {
		if err := configured("tcp", netip.AddrPortFrom(netip.MustParseAddr(a), 443).String(), nil); err == nil {
			t.Error(a)
		}
	}
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer s.Close()
	h, err := New(Config{Data: t.TempDir(), Processes: 1, Idle: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for trusted, want := range map[bool]int{false: 0, true: 1} {
		asked = 0
		a := h.Do(t.Context(), plug.Call{Web: &plug.WebRequest{Method: "GET", Address: s.URL, Trusted: trusted}})
		if asked != want || (a.Fault == nil) != trusted || a.Fault != nil && a.Fault.Code != plug.FetchFailed {
			t.Errorf("trusted %v: %d, %+v", trusted, asked, a.Fault)
		}
	}
}

func TestWeb(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "text/x-echo")
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, strings.Join([]string{r.Method, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), r.Header.Get("User-Agent"), string(body)}, "|"))
		case "/redirect":
			http.Redirect(w, r, "/never", http.StatusFound)
		case "/large":
			_, _ = w.Write(make([]byte, plug.MaxWebBody+1))
		case "/largest":
			_, _ = w.Write(make([]byte, plug.MaxWebBody))
		case "/hangs":
			<-hang
		default:
			t.Error("asked for", r.URL)
		}
	}))
	defer s.Close()
	defer close(hang)
	anywhere := sending(func(string, string, syscall.RawConn) error { return nil }, func(string, string, syscall.RawConn) error { return errors.New("not here") })
	for _, c := range []struct {
		name, body, fault string
		status            int
		in                plug.WebRequest
	}{
		{"GET", "GET|Bearer a||Longbox|", "", 418, plug.WebRequest{Method: "GET", Address: s.URL + "/echo", Headers: map[string]string{"Authorization": "Bearer a"}}},
		{"POST", "POST||application/x-www-form-urlencoded|Longbox|a=b", "", 418, plug.WebRequest{Method: "POST", Address: s.URL + "/echo", Form: []byte("a=b")}},
		{"no credentials of the address", "GET|||Longbox|", "", 418, plug.WebRequest{Method: "GET", Address: strings.Replace(s.URL, "://", "://a:b@", 1) + "/echo"}},
		{"redirect", "", "", 302, plug.WebRequest{Method: "POST", Address: s.URL + "/redirect"}},
		{"largest", string(make([]byte, plug.MaxWebBody)), "", 200, plug.WebRequest{Method: "GET", Address: s.URL + "/largest"}},
		{"large", "", "more than", 0, plug.WebRequest{Method: "GET", Address: s.URL + "/large"}},
		{"hangs", "", "deadline", 0, plug.WebRequest{Method: "GET", Address: s.URL + "/hangs"}},
		{"method", "", "GET or POST", 0, plug.WebRequest{Method: "PUT", Address: s.URL + "/echo"}},
		{"scheme", "", "not an http", 0, plug.WebRequest{Method: "GET", Address: "file:///etc/passwd"}},
		{"no address", "", "not an http", 0, plug.WebRequest{Method: "GET"}},
		{"header", "", "not allowed", 0, plug.WebRequest{Method: "GET", Address: s.URL + "/echo", Headers: map[string]string{"Host": "a"}}},
		{"two headers in one", "", "invalid header", 0, plug.WebRequest{Method: "GET", Address: s.URL + "/echo", Headers: map[string]string{"Accept": "a\r\nHost: b"}}},
		{"headers", "", "headers have more", 0, plug.WebRequest{Method: "GET", Address: s.URL + "/echo", Headers: map[string]string{"Accept": strings.Repeat("a", plug.MaxWebHeaders)}}},
		{"form", "", "form has more", 0, plug.WebRequest{Method: "POST", Address: s.URL + "/echo", Form: make([]byte, plug.MaxWebForm+1)}},
		{"form of a GET", "", "no form", 0, plug.WebRequest{Method: "GET", Address: s.URL + "/echo", Form: []byte("a")}},
		{"address", "", "address has more", 0, plug.WebRequest{Method: "GET", Address: s.URL + "/" + strings.Repeat("a", plug.MaxWebAddress)}},
		{"trusted", "", "not here", 0, plug.WebRequest{Method: "GET", Address: s.URL + "/echo", Trusted: true}},
	} {
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if c.name == "hangs" {
			ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		}
		a, fault := anywhere.web(ctx, &c.in)
		cancel()
		switch {
		case c.fault != "":
			if fault == nil || fault.Code != plug.FetchFailed || !strings.Contains(fault.Message, c.fault) {
				t.Errorf("%s: %+v", c.name, fault)
			}
		case fault != nil:
			t.Errorf("%s: %v", c.name, fault)
		case a.Web.Status != c.status || string(a.Web.Body) != c.body:
			t.Errorf("%s: %d %.100s", c.name, a.Web.Status, a.Web.Body)
		}
	}
}
