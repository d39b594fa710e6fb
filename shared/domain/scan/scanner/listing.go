package scanner

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/platform/blob"
)

// keyRange is the keys k with from <= k < to; "" is no bound.
type keyRange struct{ from, to string }

// ranges splits the keys below a prefix into about n ranges at folder boundaries, to be listed in parallel. Together
// they cover every key, including keys that appear meanwhile.
func ranges(ctx context.Context, store *blob.Store, bucket, prefix string, n int) ([]keyRange, error) {
	var cuts []string
	level := []string{prefix}
	for depth := 0; depth < 3 && len(cuts) < n; depth++ {
		var next []string
		for _, p := range level[:min(len(level), n)] {
			folders, _, _, err := store.Folders(ctx, bucket, p, "", 1)
			if err != nil && p != prefix && blob.Unreachable(err) { // list handles it
				continue
			}
			if err != nil {
				return nil, err
			}
			next = append(next, folders...)
		}
		if len(next) == 0 {
			break
		}
		cuts = append(cuts, next...)
		level = next
	}
	slices.Sort(cuts)
	cuts = slices.DeleteFunc(slices.Compact(cuts), unclear)
	if len(cuts) > n-1 {
		every := make([]string, 0, n-1)
		for i := 1; i < n; i++ {
			every = append(every, cuts[i*len(cuts)/n])
		}
		cuts = slices.Compact(every)
	}
	out := make([]keyRange, 0, len(cuts)+1)
	from := ""
	for _, c := range cuts {
		out = append(out, keyRange{from, c})
		from = c
	}
	return append(out, keyRange{from, ""}), nil
}

// after is appended to a key to get a bound after it: Postgres does not accept NUL. Stores are asked for what follows
// the key.
const after = "\x01"

// clearPart returns the part of a key before the first U+FFFD, which some stores put in place of what no listing can
// contain. They sort such a key by its real bytes: after that part it may be anywhere.
func clearPart(key string) string {
	part, _, _ := strings.Cut(key, string(utf8.RuneError))
	return part
}

func unclear(key string) bool { return len(clearPart(key)) < len(key) }

// listed is a page of up to 1,000 objects, and the range of keys that it covers.
type listed struct {
	page     []blob.Object
	covered  keyRange
	unlisted []string // folders up to here that cannot be listed: their keys are unknown
	earlier  bool     // the store may have been asked before the previous page was compared
}

// list calls each with the pages of a range: they follow each other without a gap, the last one reaches to its end. It
// starts after the folder key itself, which no book has. See Walk for counts.
func list(ctx context.Context, store *blob.Store, bucket, prefix string, r keyRange, counts func(folder string) bool, each func(l listed) error) error {
	from := r.from
	var unlisted []string
	for found, err := range store.Walk(ctx, bucket, prefix, strings.TrimSuffix(r.from, after), counts) {
		if err != nil {
			return err
		}
		if found.Unlisted != "" {
			if r.to != "" && clearPart(found.Unlisted) >= r.to {
				break
			}
			unlisted = append(unlisted, found.Unlisted)
			continue
		}
		page := found.Objects
		end := len(page) == 0
		if i := slices.IndexFunc(page, func(o blob.Object) bool { return r.to != "" && clearPart(o.Key) >= r.to }); i >= 0 {
			page, end = page[:i], true
		}
		covered := keyRange{from, r.to}
		if !end {
			covered.to = page[len(page)-1].Key + after
		}
		slices.SortFunc(page, func(a, b blob.Object) int { return strings.Compare(a.Key, b.Key) })
		// Files that no listing can distinguish.
		page = slices.CompactFunc(page, func(a, b blob.Object) bool { return a.Key == b.Key })
		if err := each(listed{page, covered, unlisted, found.Earlier}); err != nil || end {
			return err
		}
		from = covered.to
	}
	return each(listed{covered: keyRange{from, r.to}, unlisted: unlisted})
}
