package scheduler

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/testkit"
)

// Without time for more, each call deletes what has expired in one page of the listing, and the next call continues. A
// prefix that is finished is listed again after a while.
func TestExpiryInParts(t *testing.T) {
	t.Parallel()
	s := testkit.StartS3(t)
	media := s.Config.Media()
	keys := []string{blob.Expiring + "a", blob.Expiring + "b", blob.Expiring + "c"}
	for _, key := range keys {
		if err := media.Put(t.Context(), "media", key, "image/webp", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	var lists []string
	s.Counter.Meddle(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		query := r.URL.Query()
		switch {
		case query.Get("list-type") == "":
			next.ServeHTTP(w, r)
		case query.Get("prefix") != blob.Expiring:
			fmt.Fprint(w, "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
		default: // a page has one key, and the second object has not expired
			after := query.Get("start-after")
			lists = append(lists, after)
			next := slices.Index(keys, after) + 1
			object := ""
			if next < len(keys) {
				object = fmt.Sprintf("<Contents><Key>%s</Key><LastModified>2026-01-%02dT00:00:00Z</LastModified><Size>1</Size></Contents>", keys[next], []int{1, 20, 1}[next])
			}
			fmt.Fprintf(w, "<ListBucketResult>%s<IsTruncated>%t</IsTruncated><NextContinuationToken>n</NextContinuationToken></ListBucketResult>", object, next < len(keys)-1)
		}
	})
	e := &expiry{media: media, bucket: "media", places: map[string]string{}, done: map[string]time.Time{}}
	start := time.Date(2026, 2, 5, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		hour  time.Duration
		lists []string
	}{{0, []string{""}}, {1, keys[:1]}, {2, keys[1:2]}, {3, keys[2:]}, {4, nil}, {26, nil}, {27, []string{""}}} {
		lists = nil
		if err := e.delete(t.Context(), start.Add(c.hour*time.Hour), -time.Second); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(lists, c.lists) {
			t.Errorf("after %d hours: listed after %q, want %q", c.hour, lists, c.lists)
		}
	}
	for i, key := range keys {
		if _, _, err := media.Get(t.Context(), "media", key); errors.Is(err, blob.ErrNotFound) != (i != 1) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
