package blob

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// shelves is a store of keys with unreadable folders: every listing that includes one fails.
type shelves struct {
	keys   []string
	closed []string
	page   int
	asked  atomic.Int64
}

func (s *shelves) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	q := r.URL.Query()
	prefix, after, delimiter := q.Get("prefix"), max(q.Get("start-after"), q.Get("continuation-token")), q.Get("delimiter")
	size := s.page
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil {
		size = min(size, n)
	}
	var out strings.Builder
	var last string
	n, more := 0, false
	for _, key := range slices.Sorted(slices.Values(append(slices.Clone(s.keys), s.closed...))) {
		closed := slices.Contains(s.closed, key)
		if !strings.HasPrefix(key, prefix) && !(closed && strings.HasPrefix(prefix, key)) {
			continue
		}
		shown := key
		if below, _, deeper := strings.Cut(strings.TrimPrefix(key, prefix), "/"); delimiter != "" && deeper && len(key) > len(prefix) {
			shown = prefix + below + "/"
		}
		if shown == last || shown <= after {
			continue
		}
		if more = n == size; more {
			break
		}
		if closed && shown == key && (delimiter == "" || len(key) <= len(prefix)) {
			http.Error(w, "InternalError", http.StatusInternalServerError)
			return
		}
		n, last = n+1, shown
		out.WriteString(map[bool]string{true: "<CommonPrefixes><Prefix>", false: "<Contents><Key>"}[shown != key || closed])
		_ = xml.EscapeText(&out, []byte(shown))
		out.WriteString(map[bool]string{true: "</Prefix></CommonPrefixes>", false: "</Key></Contents>"}[shown != key || closed])
	}
	fmt.Fprintf(w, "<ListBucketResult>%s<IsTruncated>%t</IsTruncated><NextContinuationToken>", out.String(), more)
	_ = xml.EscapeText(w, []byte(last))
	io.WriteString(w, "</NextContinuationToken></ListBucketResult>")
}

func walked(t *testing.T, s *Store, prefix, after string) (keys, unlisted []string, err error) {
	t.Helper()
	for w, err := range s.Walk(t.Context(), "books", prefix, after, nil) {
		if err != nil {
			return keys, unlisted, err
		}
		if w.Unlisted != "" {
			unlisted = append(unlisted, w.Unlisted)
		} else if len(w.Objects) == 0 {
			t.Error("a part without objects")
		}
		for _, o := range w.Objects {
			keys = append(keys, o.Key)
		}
	}
	return keys, unlisted, nil
}

// A walk yields everything that can be listed, in order, from any start, and names the folders that cannot.
func TestWalk(t *testing.T) {
	names := []string{"a", "a-b", "a b", "b", "é"}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		path := func(end string) string {
			var p strings.Builder
			for range random.IntN(3) {
				p.WriteString(names[random.IntN(len(names))] + "/")
			}
			return p.String() + names[random.IntN(len(names))] + end
		}
		s := &shelves{page: 1 + random.IntN(5)}
		for range random.IntN(3) {
			s.closed = append(s.closed, path("/"))
		}
		below := func(key string) bool {
			return slices.ContainsFunc(s.closed, func(c string) bool { return strings.HasPrefix(key, c) })
		}
		s.closed = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(s.closed))), func(c string) bool {
			return slices.ContainsFunc(s.closed, func(other string) bool { return c != other && strings.HasPrefix(c, other) })
		})
		for range 30 {
			if key := path(strconv.Itoa(random.IntN(3)) + ".cbz"); !below(key) {
				s.keys = append(s.keys, key)
			}
		}
		s.keys = slices.Compact(slices.Sorted(slices.Values(s.keys)))
		prefix, after := "", ""
		if random.IntN(2) == 0 {
			prefix = "a/"
		}
		if random.IntN(2) == 0 && len(s.keys) > 0 {
			after = s.keys[random.IntN(len(s.keys))]
		}
		url, _, _ := served(t, s.ServeHTTP)
		store := troubled(t, url)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			keys, unlisted, err := walked(t, store, prefix, after)
			if slices.ContainsFunc(s.closed, func(c string) bool { return strings.HasPrefix(prefix, c) }) {
				if err == nil && after < prefix {
					t.Errorf("what cannot be listed at all gives %q", keys)
				}
				return
			}
			want := slices.DeleteFunc(slices.Clone(s.keys), func(k string) bool { return !strings.HasPrefix(k, prefix) || k <= after })
			closed := slices.DeleteFunc(slices.Clone(s.closed), func(c string) bool { return !strings.HasPrefix(c, prefix) || c <= after })
			if err != nil || !slices.Equal(keys, want) || !slices.Equal(unlisted, closed) {
				t.Errorf("%v, closed %q, from %q after %q:\n%q\n%q, unlisted\n%q\n%q", err, s.closed, prefix, after, keys, want, unlisted, closed)
			}
		})
	}
}

// A failing store is distinguished from one with a few unreadable folders.
func TestWalkGivesUp(t *testing.T) {
	s := &shelves{page: 1000, closed: []string{"a/", "b/", "c/"}}
	url, _, _ := served(t, s.ServeHTTP)
	for may, gaveUp := range map[int]bool{3: false, 2: true} {
		left, failed := 0, false
		var many *UnlistedError
		w := walk{store: troubled(t, url), bucket: "books", may: may, yield: func(_ Walked, err error) bool {
			if failed = err != nil; !failed {
				left++
			} else if !errors.As(err, &many) || !slices.Equal(many.Folders, s.closed[:may]) || !InternalError(err) {
				t.Error(err)
			}
			return true
		}}
		w.all(t.Context(), "", "")
		if left != may || failed != gaveUp {
			t.Errorf("%d of 3 folders may be left out: %d were, failed %t", may, left, failed)
		}
	}
	url, _, _ = served(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	if _, unlisted, err := walked(t, troubled(t, url), "", ""); err == nil || len(unlisted) > 0 {
		t.Errorf("%q left out, %v", unlisted, err)
	}
}

// A name that is not UTF-8 is shown as another one, by which the folder cannot be requested.
func TestWalkUnclear(t *testing.T) {
	s := &shelves{page: 1000, keys: []string{"a/1.cbz", "b\uFFFD/2.cbz", "c/3.cbz"}, closed: []string{"b\uFFFD/"}}
	url, _, _ := served(t, s.ServeHTTP)
	keys, unlisted, err := walked(t, troubled(t, url), "", "")
	if err != nil || fmt.Sprintf("%q %q", keys, unlisted) != "[\"a/1.cbz\" \"c/3.cbz\"] [\"b\uFFFD/\"]" {
		t.Errorf("%q %q %v", keys, unlisted, err)
	}
}

// An unreadable folder costs only a few requests, however many others there are.
func TestWalkGoesOn(t *testing.T) {
	s := &shelves{page: 1000, closed: []string{"0050/x/"}}
	for i := range 3000 {
		s.keys = append(s.keys, fmt.Sprintf("%04d/1.cbz", i))
	}
	url, _, _ := served(t, s.ServeHTTP)
	keys, unlisted, err := walked(t, troubled(t, url), "", "")
	if err != nil || len(keys) != 3000 || len(unlisted) != 1 || s.asked.Load() > 40 {
		t.Errorf("%d keys, %q, %d requests, %v", len(keys), unlisted, s.asked.Load(), err)
	}
}

// After a failure of the whole store the walk soon goes on as before, and another failure does not end it.
func TestWalkRecovers(t *testing.T) {
	s := &shelves{page: 1000}
	for i := range 3000 {
		s.keys = append(s.keys, fmt.Sprintf("%04d/1.cbz", i))
	}
	var n atomic.Int64
	url, _, _ := served(t, func(w http.ResponseWriter, r *http.Request) {
		switch at := n.Add(1); {
		case at <= 6:
			http.Error(w, "InternalError", http.StatusInternalServerError)
		case at == 8:
			http.Error(w, "SlowDown", http.StatusServiceUnavailable)
		default:
			s.ServeHTTP(w, r)
		}
	})
	keys, unlisted, err := walked(t, troubled(t, url), "", "")
	if err != nil || len(keys) != 3000 || len(unlisted) != 0 || n.Load() > 40 {
		t.Errorf("%d keys, %q, %d requests, %v", len(keys), unlisted, n.Load(), err)
	}
}

// Objects are found even if a folder between them is unreadable.
func TestLookAround(t *testing.T) {
	s := &shelves{page: 1000, closed: []string{"a/m/"}, keys: []string{"a/b.cbz", "a/x.cbz", "a/z.cbz"}}
	url, _, _ := served(t, s.ServeHTTP)
	found, err := troubled(t, url).Look(t.Context(), "books", []string{"a/b.cbz", "a/c.cbz", "a/x.cbz"})
	if err != nil || len(found) != 2 || found[0].Key != "a/b.cbz" || found[1].Key != "a/x.cbz" {
		t.Errorf("%v, %v", found, err)
	}
}

// While a level is listed by itself, its objects are older than those of the folders before them.
func TestWalkTellsWhatIsEarlier(t *testing.T) {
	s := &shelves{page: 1000, closed: []string{"b/x/"}, keys: []string{"a.cbz", "a/1.cbz", "b/1.cbz", "c/1.cbz"}}
	url, _, _ := served(t, s.ServeHTTP)
	var got []string
	for w, err := range troubled(t, url).Walk(t.Context(), "books", "", "", nil) {
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range w.Objects {
			got = append(got, fmt.Sprint(o.Key, " ", w.Earlier))
		}
	}
	if want := []string{"a.cbz true", "a/1.cbz true", "b/1.cbz true", "c/1.cbz false"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
