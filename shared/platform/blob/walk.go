package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxUnlisted is how many folders a walk leaves out; with more there is something wrong with the store.
const maxUnlisted = 100

// Walked is what a walk yields: some objects, or a folder that the store cannot list, as a whole prefix with the slash.
// Earlier says that the store may have been asked for the objects before what was yielded last.
type Walked struct {
	Objects  []Object
	Unlisted string
	Earlier  bool
}

// UnlistedError is that a walk has left out so many folders that it leaves out no more; they are whole prefixes with
// the slash.
type UnlistedError struct {
	Folders []string
	Err     error // of the one after them
}

func (e *UnlistedError) Error() string {
	return fmt.Sprintf("%d folders cannot be listed, from %s on, nor can another: %v", len(e.Folders), e.Folders[0], e.Err)
}

func (e *UnlistedError) Unwrap() error { return e.Err }

// Walk is List for stores over folders: one that the store may not read, or with a name that no request can hold, fails the listing of
// all above it. Walk goes on level by level from there, and yields such a folder where its keys would come; it fails where the prefix itself
// cannot be listed, and with an UnlistedError for more than a hundred folders below it, of those that count (nil: all do).
func (s *Store) Walk(ctx context.Context, bucket, prefix, startAfter string, counts func(folder string) bool) iter.Seq2[Walked, error] {
	return func(yield func(Walked, error) bool) {
		w := walk{store: s, bucket: bucket, prefix: prefix, may: maxUnlisted, counts: counts, yield: yield}
		w.all(ctx, prefix, startAfter)
	}
}

type walk struct {
	store          *Store
	bucket, prefix string
	levels         int // that were listed by themselves
	open           int // of these, that objects are yielded of
	may            int // folders that may be left out, of those that count
	counts         func(folder string) bool
	left           []string
	yield          func(Walked, error) bool
}

// pageSizes are how many keys a walk asks for: fewer where that fails, to come close to the folder that is the reason.
var pageSizes = []string{"1000", "250", "60", "15", "4"}

// all yields what is below a prefix and after a key; it returns false when the walk is over.
func (w *walk) all(ctx context.Context, prefix, after string) bool {
	token := ""
	for size := 0; ; {
		at := url.Values{"max-keys": {pageSizes[size]}}
		if token != "" {
			at.Set("continuation-token", token)
		} else if after != "" {
			at.Set("start-after", after)
		}
		tries := 1
		if prefix == w.prefix && size == 0 {
			tries = attempts
		}
		l, err := w.store.listTrying(ctx, tries, w.bucket, prefix, at)
		switch {
		case Failed(err) && size+1 < len(pageSizes):
			size, token = size+1, "" // which may be of a page of that size
			continue
		case Failed(err):
			return w.level(ctx, prefix, after, err)
		case err != nil:
			w.yield(Walked{}, err)
			return false
		case !w.give(l.objects):
			return false
		case !l.more:
			return true
		}
		if token = l.next; len(l.objects) > 0 {
			after = l.objects[len(l.objects)-1].Key
		}
	}
}

// level is all where that failed because of some folder: it lists one level, and its folders each by itself, until that
// one is behind.
func (w *walk) level(ctx context.Context, prefix, after string, cause error) bool {
	w.levels++
	at := url.Values{"delimiter": {"/"}}
	if below, ok := strings.CutPrefix(after, prefix); ok && after != "" {
		name, _, _ := strings.Cut(below, "/") // the folder that the key lies in comes after its name
		at.Set("start-after", prefix+name)
	}
	for {
		l, err := w.store.list(ctx, w.bucket, prefix, at)
		switch {
		case Failed(err) && prefix != w.prefix:
			return w.leaveOut(prefix, err)
		case err != nil:
			w.yield(Walked{}, err)
			return false
		}
		w.open++
		past, more := w.entries(ctx, l, prefix, after, cause)
		w.open--
		switch {
		case !more:
			return false
		case past != "":
			return w.all(ctx, prefix, past)
		case !l.more:
			return true
		}
		at.Set("continuation-token", l.next)
	}
}

// entries yields a page of one level, up to a folder that was not listed whole: past is what comes after its keys. more
// is false when the walk is over.
func (w *walk) entries(ctx context.Context, l listing, prefix, after string, cause error) (past string, more bool) {
	slices.SortFunc(l.objects, func(a, b Object) int { return cmp.Compare(a.Key, b.Key) })
	slices.Sort(l.folders)
	objects := slices.DeleteFunc(l.objects, func(o Object) bool { return o.Key <= after })
	for _, folder := range l.folders {
		n := len(objects)
		if i := slices.IndexFunc(objects, func(o Object) bool { return o.Key > folder }); i >= 0 {
			n = i
		}
		if !w.give(objects[:n]) {
			return "", false
		}
		objects = objects[n:]
		levels := w.levels
		switch {
		case folder == prefix || folder < after && !strings.HasPrefix(after, folder):
		case strings.ContainsRune(folder, utf8.RuneError): // what its name is, the store does not tell
			if !w.leaveOut(folder, cause) {
				return "", false
			}
		case !w.all(ctx, folder, after):
			return "", false
		case w.levels > levels:
			return strings.TrimSuffix(folder, "/") + "0", true // which follows the slash; a file of just this name is missed
		}
	}
	return "", w.give(objects)
}

func (w *walk) give(objects []Object) bool {
	return len(objects) == 0 || w.yield(Walked{Objects: objects, Earlier: w.open > 0}, nil)
}

func (w *walk) leaveOut(folder string, cause error) bool {
	if w.counts == nil || w.counts(folder) {
		if len(w.left) >= w.may {
			w.yield(Walked{}, &UnlistedError{w.left, cause})
			return false
		}
		w.left = append(w.left, folder)
	}
	return w.yield(Walked{Unlisted: folder}, nil)
}

// Failed tells whether the store answered that something went wrong within it: of a gateway over folders, also that it
// may not read one.
func Failed(err error) bool {
	var answer *StatusError
	return errors.As(err, &answer) && answer.Status == http.StatusInternalServerError
}
