package rig

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestLastID cuts a resumed stream before its first event: the client must go on from where it was, not from now.
func TestLastID(t *testing.T) {
	t.Parallel()
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n"+body)
	}))
	defer server.Close()
	for _, test := range []struct{ body, want string }{
		{"", "7-0"},
		{"retry: 1000\n\n", "7-0"},
		{"retry: 1000\n\nid: 8-0\nevent: n\n", "7-0"},
		{"retry: 1000\n\nid: 8-0\nevent: n\ndata: 1\n\nid: 9", "8-0"},
	} {
		body = test.body
		c, err := Open(strings.TrimPrefix(server.URL, "http://"), "/", "Last-Event-ID: 7-0")
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = c.Next()
		}
		if c.LastID != test.want {
			t.Errorf("%q: resumes from %q, want %s", test.body, c.LastID, test.want)
		}
		c.Close()
	}
}
