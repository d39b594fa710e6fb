package blob

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A store that stops reading does not block an upload forever.
func TestAStoreThatTakesNothing(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	ended := make(chan struct{})
	store := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }))
	defer store.Close()
	defer close(ended)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := stored(ctx, store.URL, make([]byte, 16<<20))
	if !Unreachable(err) || ctx.Err() != nil {
		t.Errorf("%v, want that the store takes nothing", err)
	}
}

// The SDK's errors for a store that is down, or that closes before it responds, are distinguished from a refusal.
func TestAStoreThatIsGone(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	ends := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}))
	defer ends.Close()
	for name, url := range map[string]string{"gone": "http://" + gone.Addr().String(), "ends": ends.URL} {
		if err := stored(t.Context(), url, []byte("a")); !Unreachable(err) {
			t.Errorf("%s: %v, want that it is not reachable", name, err)
		}
	}
}

// stored puts an object into a store that has little time.
func stored(ctx context.Context, url string, data []byte) error {
	opened := open(url, Config{PathStyle: true, Region: "us-east-1"}, 200*time.Millisecond)
	return (&Store{open: func() clients { return opened }}).Put(ctx, "media", "a", "text/plain", data)
}
