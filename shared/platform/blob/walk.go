package blob

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxUnlisted limits the folders that a walk skips. More mean that something is wrong with the store.
const maxUnlisted = 100

// Walked is one result of a walk: some objects, or a folder that the store cannot list (the whole prefix with the
// slash). Earlier says that the objects may have been listed before the previous result.
type Walked struct {
	Objects  []Object
	Unlisted string
	Earlier  bool
}

// UnlistedError means that a walk reached the limit of skipped folders. Folders are whole prefixes with the slash.
type UnlistedError struct {
	Folders []string
	Err     error // of the next one
}

func (e *UnlistedError) Error() string {
	return fmt.Sprintf("more than %d folders cannot be listed; the first is %s, and the last error is: %v", len(e.Folders), e.Folders[0], e.Err)
}

func (e *UnlistedError) Unwrap() error { return e.Err }

// Walk is List for stores over folders. There a folder that the store may not read, or whose name no request can hold,
// makes the listing of all its parents fail. Walk then lists level by level, and yields each such folder where its keys
// would come. It fails if the prefix itself cannot be listed, and with an UnlistedError if more than a hundred such
// folders count (nil: all do).
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

// pageSizes are the page sizes that a walk tries. After a failure it tries smaller pages, to get close to the bad
// folder; after goodPages of a size larger ones again, as the failure may have passed.
var pageSizes = []string{"1000", "250", "60", "15", "4"}

const goodPages = 4

// all yields everything below a prefix and after a key. It reports false when the walk is over.
func (w *walk) all(ctx context.Context, prefix, after string) bool {
	token := ""
	for size, good := 0, 0; ; {
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
		if err != nil && tries == 1 && !InternalError(err) { // no folder is the cause
			l, err = w.store.listTrying(ctx, attempts, w.bucket, prefix, at)
		}
		switch {
		case InternalError(err) && size+1 < len(pageSizes):
			size, good, token = size+1, 0, "" // the token may belong to the larger page size
			continue
		case InternalError(err):
			return w.level(ctx, prefix, after, err)
		case err != nil:
			w.yield(Walked{}, err)
			return false
		case !w.give(l.objects):
			return false
		case !l.more:
			return true
		}
		if token = l.next; len(l.objects) == 0 {
			continue
		}
		after = l.objects[len(l.objects)-1].Key
		if good++; size > 0 && good == goodPages {
			size, good, token = size-1, 0, ""
		}
	}
}

// level is used when all fails because of some folder. It lists one level and each of its folders, until it is past the
// bad one.
func (w *walk) level(ctx context.Context, prefix, after string, cause error) bool {
	w.levels++
	at := url.Values{"delimiter": {"/"}}
	if below, ok := strings.CutPrefix(after, prefix); ok && after != "" {
		name, _, _ := strings.Cut(below, "/") // the folder of the key sorts after its name
		at.Set("start-after", prefix+name)
	}
	for l, err := range w.store.pages(ctx, w.bucket, prefix, at) {
		switch {
		case InternalError(err) && prefix != w.prefix:
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
		}
	}
	return true
}

// entries yields a page of one level, up to a folder that was not listed completely. past sorts after the keys of this
// folder. more is false when the walk is over.
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
		case strings.ContainsRune(folder, utf8.RuneError): // the store does not reveal its name
			if !w.leaveOut(folder, cause) {
				return "", false
			}
		case !w.all(ctx, folder, after):
			return "", false
		case w.levels > levels:
			// This sorts right after the slash. A file with exactly this name is missed.
			return strings.TrimSuffix(folder, "/") + "0", true
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
