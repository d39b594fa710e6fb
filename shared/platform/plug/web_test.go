package plug_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/platform/plug"
)

// An http.Client works through the function plugin, with the allowed headers and form, and without redirects.
func TestTransport(t *testing.T) {
	t.Parallel()
	at, _, call := answering(t, 200, nil, `{"web":{"status":302,"contentType":"text/plain","body":"aGVsbG8="}}`)
	client := http.Client{Transport: plug.Transport{Client: plug.New(plug.Config{URL: at, Token: "x"}),
		Trusted: func(u *url.URL) bool { return u.Host == "id.test" }}}
	r, err := http.NewRequest("POST", "https://id.test/token?a=b", strings.NewReader("code=1"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Basic abc")
	r.Header.Set("Cookie", "a=b")
	res, err := client.Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != "hello" || res.StatusCode != 302 || res.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("%s %+v %v", body, res, err)
	}
	sent := call.Web
	if sent == nil || sent.Method != "POST" || sent.Address != "https://id.test/token?a=b" || string(sent.Form) != "code=1" || !sent.Trusted ||
		sent.Headers["Authorization"] != "Basic abc" || len(sent.Headers) != 1 {
		t.Errorf("%+v", sent)
	}
	*call = plug.Call{}
	other, err := http.NewRequest("GET", "https://other.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err = client.Transport.RoundTrip(other)
	if err != nil || call.Web.Trusted || call.Web.Method != "GET" {
		t.Fatalf("%+v %v", call.Web, err)
	}
	res.Body.Close()
}

// A function that does not know the call is distinguished from a server that does not answer.
func TestWebGoesWrong(t *testing.T) {
	t.Parallel()
	for answer, code := range map[string]string{`{}`: plug.Unavailable, `{"fault":{"code":"FETCH_ERROR","message":"no"}}`: plug.FetchFailed} {
		at, _, _ := answering(t, 200, nil, answer)
		var f *plug.Fault
		if _, err := plug.New(plug.Config{URL: at, Token: "x"}).Web(t.Context(), plug.WebRequest{Method: "GET", Address: "https://a.test"}); !errors.As(err, &f) || f.Code != code {
			t.Errorf("%s: %v", answer, err)
		}
	}
}
