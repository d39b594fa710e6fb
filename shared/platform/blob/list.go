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

// maxListing limits the size of a listing page: a thousand keys of 1,024 bytes, each byte escaped, with their
// attributes.
const maxListing = 16 << 20

// list reads one page of a listing (ListObjectsV2). A key may have characters that are invalid in XML. Amazon S3 then
// sends invalid XML, so the page is requested again with URL-encoded keys. This is no default, because most stores
// would then send three bytes for one.
func (s *Store) list(ctx context.Context, bucket, prefix string, more url.Values) (listing, error) {
	return s.listTrying(ctx, attempts, bucket, prefix, more)
}

// listTrying is list with at most this many tries.
func (s *Store) listTrying(ctx context.Context, most int, bucket, prefix string, more url.Values) (listing, error) {
	query := url.Values{"list-type": {"2"}, "prefix": {prefix}}
	maps.Copy(query, more)
	l, err := s.open().read.list(ctx, bucket, query, most)
	if errors.As(err, new(*xml.SyntaxError)) {
		query.Set("encoding-type", "url")
		l, err = s.open().read.list(ctx, bucket, query, most)
	}
	if err == nil && l.more && l.next == "" { // without a token the next page would be the first one again
		err = errors.New("the store's listing is incomplete but has no continuation token")
	}
	if err != nil {
		return l, fmt.Errorf("list s3://%s/%s: %w", bucket, prefix, err)
	}
	return l, nil
}

// List yields the objects below a prefix in key order, from the first key after startAfter. Each page of 1,000 takes
// one request.
func (s *Store) List(ctx context.Context, bucket, prefix, startAfter string) iter.Seq2[[]Object, error] {
	return func(yield func([]Object, error) bool) {
		at := url.Values{}
		if startAfter != "" {
			at.Set("start-after", startAfter)
		}
		for l, err := range s.pages(ctx, bucket, prefix, at) {
			if !yield(l.objects, err) {
				return
			}
		}
	}
}

// pages yields a listing page by page. It changes at.
func (s *Store) pages(ctx context.Context, bucket, prefix string, at url.Values) iter.Seq2[listing, error] {
	return func(yield func(listing, error) bool) {
		for {
			l, err := s.list(ctx, bucket, prefix, at)
			if err != nil {
				yield(listing{}, err)
				return
			}
			if !yield(l, nil) || !l.more {
				return
			}
			at.Set("continuation-token", l.next)
		}
	}
}

// Folders lists one level below a prefix: the folders (whole prefixes with the slash) and the objects. after is the
// last entry of the previous listing without the prefix, or "" to begin. It reads at most this many pages of a thousand
// entries; more reports that there are others.
func (s *Store) Folders(ctx context.Context, bucket, prefix, after string, pages int) (folders []string, objects []Object, more bool, err error) {
	at := url.Values{"delimiter": {"/"}}
	if after != "" {
		at.Set("start-after", prefix+after)
	}
	for l, err := range s.pages(ctx, bucket, prefix, at) {
		if err != nil {
			return nil, nil, false, err
		}
		folders, objects, more = append(folders, l.folders...), append(objects, l.objects...), l.more
		if pages--; pages == 0 {
			break
		}
	}
	// What is in a folder sorts after its name, so the folder that was the last entry is listed again.
	folders = slices.DeleteFunc(folders, func(name string) bool { return after != "" && name <= prefix+after })
	return folders, slices.DeleteFunc(objects, func(o Object) bool { return strings.HasSuffix(o.Key, "/") }), more, nil
}

// Holds reports whether a listing shows anything below a prefix, besides the prefix itself.
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

// Named reports what the listing of a folder shows under a name: a folder, an object, both or neither. A gateway over a
// file system serves files behind a symbolic link to a folder, but does not list the link as a folder.
func (s *Store) Named(ctx context.Context, bucket, name string) (folder, object bool, err error) {
	for l, err := range s.pages(ctx, bucket, name, url.Values{"delimiter": {"/"}}) {
		if err != nil {
			return false, false, err
		}
		folder = slices.Contains(l.folders, name+"/")
		object = object || slices.ContainsFunc(l.objects, func(o Object) bool { return o.Key == name })
		if folder {
			break
		}
	}
	return folder, object, nil
}
