package blob

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// maxListing bounds an answer: a thousand keys of 1,024 bytes, each byte escaped, with all that is said of them.
const maxListing = 16 << 20

// list asks for one page of a listing (ListObjectsV2). A key may have characters that XML cannot hold: Amazon S3 then
// sends what no reader takes, and the same page with its keys as in a URL when it is asked so. Most stores would send
// three bytes for one.
func (s *Store) list(ctx context.Context, bucket, prefix string, more url.Values) (listing, error) {
	return s.listTrying(ctx, attempts, bucket, prefix, more)
}

// listTrying is list with at most so many tries.
func (s *Store) listTrying(ctx context.Context, most int, bucket, prefix string, more url.Values) (listing, error) {
	query := url.Values{"list-type": {"2"}, "prefix": {prefix}}
	maps.Copy(query, more)
	l, err := s.open().read.list(ctx, bucket, query, most)
	if errors.As(err, new(*xml.SyntaxError)) {
		query.Set("encoding-type", "url")
		l, err = s.open().read.list(ctx, bucket, query, most)
	}
	if err == nil && l.more && l.next == "" { // without a token the next page would be the first one again
		err = errors.New("the store's listing: there is more, but it does not say where it goes on")
	}
	if err != nil {
		return l, fmt.Errorf("list s3://%s/%s: %w", bucket, prefix, err)
	}
	return l, nil
}

// List yields the objects below a prefix in key order, page by page of 1,000 and one request each, from the
// first key after startAfter.
func (s *Store) List(ctx context.Context, bucket, prefix, startAfter string) iter.Seq2[[]Object, error] {
	return func(yield func([]Object, error) bool) {
		at := url.Values{}
		if startAfter != "" {
			at.Set("start-after", startAfter)
		}
		for {
			l, err := s.list(ctx, bucket, prefix, at)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(l.objects, nil) || !l.more {
				return
			}
			at.Set("continuation-token", l.next)
		}
	}
}

// Folders lists one level below a prefix: the folders (whole prefixes with the slash) and the objects, from at most so
// many pages of a thousand of both; more says that there are others.
func (s *Store) Folders(ctx context.Context, bucket, prefix string, pages int) (folders []string, objects []Object, more bool, err error) {
	at := url.Values{"delimiter": {"/"}}
	for range pages {
		l, err := s.list(ctx, bucket, prefix, at)
		if err != nil {
			return nil, nil, false, err
		}
		folders, objects, more = append(folders, l.folders...), append(objects, l.objects...), l.more
		if !more {
			break
		}
		at.Set("continuation-token", l.next)
	}
	return folders, slices.DeleteFunc(objects, func(o Object) bool { return strings.HasSuffix(o.Key, "/") }), more, nil
}

// Holds tells whether anything is listed below a prefix, besides an entry of the prefix itself.
func (s *Store) Holds(ctx context.Context, bucket, prefix string) (bool, error) {
	l, err := s.list(ctx, bucket, prefix, url.Values{"delimiter": {"/"}, "max-keys": {"2"}})
	if err != nil {
		return false, err
	}
	for _, o := range l.objects {
		if o.Key != prefix {
			return true, nil
		}
	}
	return len(l.folders) > 0, nil
}

// Named tells what the listing of a folder shows by a name: a folder, an object, both or neither. A gateway over a file
// system gives out what lies behind a symbolic link to a folder, but shows no folder by its name.
func (s *Store) Named(ctx context.Context, bucket, name string) (folder, object bool, err error) {
	at := url.Values{"delimiter": {"/"}}
	for {
		l, err := s.list(ctx, bucket, name, at)
		if err != nil {
			return false, false, err
		}
		folder = slices.Contains(l.folders, name+"/")
		object = object || slices.ContainsFunc(l.objects, func(o Object) bool { return o.Key == name })
		if folder || !l.more {
			return folder, object, nil
		}
		at.Set("continuation-token", l.next)
	}
}
