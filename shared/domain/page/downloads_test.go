package page

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// The slow downloads of one user do not fill the server; others still download.
func TestDownloadsAtOnce(t *testing.T) {
	t.Parallel()
	s := NewServer(Server{})
	me, other := &auth.Caller{AccountID: uuid.New()}, &auth.Caller{AccountID: uuid.New()}
	request := func(method string, caller *auth.Caller) *http.Request {
		r := httptest.NewRequest(method, "/", nil)
		return r.WithContext(db.In(r.Context(), caller))
	}
	var ends []func()
	for range mostDownloads {
		end, err := s.downloads.begin(request("GET", me))
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	i := &Index{Key: "S/a.cbz", Format: "cbz", Size: 100, ETag: "x", Modified: time.Unix(1000, 0)}
	if err := s.File(httptest.NewRecorder(), request("GET", me), i); !fault.Is(err, fault.TooManyRequests) {
		t.Errorf("one more: %v", err)
	}
	if err := s.File(httptest.NewRecorder(), request("HEAD", me), i); err != nil {
		t.Errorf("HEAD: %v", err)
	}
	if _, err := s.downloads.begin(request("GET", other)); err != nil {
		t.Errorf("another user: %v", err)
	}
	for _, end := range ends {
		end()
	}
	if _, err := s.downloads.begin(request("GET", me)); err != nil || len(s.downloads.of) != 2 {
		t.Errorf("afterwards: %v, %v", err, s.downloads.of)
	}
}
