package blob

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A refusal of the store means the same in a read and in a write.
func TestRefusalsMeanTheSame(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{http.StatusForbidden, "InvalidObjectState", ErrArchived},
		{http.StatusForbidden, "AccessDenied", ErrDenied},
		{http.StatusMovedPermanently, "PermanentRedirect", ErrDenied},
		{http.StatusBadRequest, "AuthorizationHeaderMalformed", ErrDenied},
		{http.StatusConflict, "OperationAborted", ErrBusy},
		{http.StatusPreconditionFailed, "PreconditionFailed", ErrChanged},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<Error><Code>"+c.code+"</Code></Error>", c.status)
		}))
		defer srv.Close()
		s := Config{LibraryEndpoint: srv.URL, PathStyle: true, Region: "us-east-1"}.Library()
		_, _, read := s.Get(t.Context(), "books", "a")
		write := s.Put(t.Context(), "books", "a", "text/plain", []byte("x"))
		if !errors.Is(read, c.want) || !errors.Is(write, c.want) {
			t.Errorf("%s: read %v, write %v", c.code, read, write)
		}
	}
}
