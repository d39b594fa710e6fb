package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A response that a panic truncates does not look complete. Without a started response, the client gets an error.
func TestPanicCutsTheAnswer(t *testing.T) {
	t.Parallel()
	for _, written := range []int{0, 10_000} {
		s := httptest.NewServer((&API{}).observe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if written > 0 {
				_, _ = w.Write(make([]byte, written))
			}
			panic("on purpose")
		})))
		defer s.Close()
		res, err := http.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		_, err = io.ReadAll(res.Body)
		if cut := err != nil; cut != (written > 0) || (res.StatusCode == http.StatusOK) != cut {
			t.Errorf("%d bytes written: status %d, %v", written, res.StatusCode, err)
		}
	}
}
