package scanner

import (
	"context"
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/platform/blob"
)

// keyRange is the keys k with from <= k < to; "" is no bound.
type keyRange struct{ from, to string }

// ranges cuts the keys below a prefix into about n parts at folder boundaries, so that they can be listed in
// parallel. Together they cover every key, whatever appears meanwhile.
func ranges(ctx context.Context, store *blob.Store, bucket, prefix string, n int) ([]keyRange, error) {
	var cuts []string
	level := []string{prefix}
	for depth := 0; depth < 3 && len(cuts) < n; depth++ {
		var next []string
		for _, p := range level[:min(len(level), n)] {
			folders, _, _, err := store.Folders(ctx, bucket, p)
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
	cuts = slices.Compact(cuts)
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

// after makes of a key the smallest one after it: Postgres knows no NUL. Stores are asked for what follows the key.
const after = "\x01"

// list calls each with the objects of a range, a page of up to 1,000 at a time, and with the range of keys that the
// page stands for: pages of one range follow each other without a gap, the last one reaches to its end. It starts
// after the folder key itself, which no book has.
func list(ctx context.Context, store *blob.Store, bucket, prefix string, r keyRange, each func(page []blob.Object, covered keyRange) error) error {
	from := r.from
	for page, err := range store.List(ctx, bucket, prefix, strings.TrimSuffix(r.from, after)) {
		if err != nil {
			return err
		}
		end := false
		if r.to != "" {
			if i, _ := slices.BinarySearchFunc(page, r.to, func(o blob.Object, k string) int { return strings.Compare(o.Key, k) }); i < len(page) {
				page, end = page[:i], true
			}
		}
		if end || len(page) == 0 {
			return each(page, keyRange{from, r.to})
		}
		next := page[len(page)-1].Key + after
		if err := each(page, keyRange{from, next}); err != nil {
			return err
		}
		from = next
	}
	return each(nil, keyRange{from, r.to})
}
