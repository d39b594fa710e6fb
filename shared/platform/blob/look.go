package blob

import (
	"context"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Look finds the objects with these keys, which must be sorted. Missing objects are left out. It uses listings, so that
// an object looks the same as in a scan: HEAD has whole seconds, some listings (MinIO) have finer times. Keys that are
// close together take one request.
func (s *Store) Look(ctx context.Context, bucket string, keys []string) ([]Object, error) {
	var found []Object
	for len(keys) > 0 {
		folder := keys[0][:strings.LastIndexByte(keys[0], '/')+1]
		n := 1
		for n < len(keys) && strings.HasPrefix(keys[n], folder) {
			n++
		}
		some, err := s.lookBelow(ctx, bucket, keys[:n])
		if err != nil {
			return nil, err
		}
		found, keys = append(found, some...), keys[n:]
	}
	return found, nil
}

// lookBelow finds the objects of keys in one folder.
func (s *Store) lookBelow(ctx context.Context, bucket string, keys []string) (found []Object, err error) {
	seen := "" // everything up to here was listed
	for len(keys) > 0 {
		prefix, only, more := common(keys[0], keys[len(keys)-1]), len(keys) == 1, url.Values{}
		if only {
			more.Set("max-keys", "1") // the key itself sorts first among the keys with this prefix
		} else if after := max(before(keys[0]), seen); len(after) > len(prefix) {
			more.Set("start-after", after)
		}
		l, err := s.list(ctx, bucket, prefix, more)
		if InternalError(err) && !only { // perhaps a folder between them cannot be listed
			for i := range keys {
				one, err := s.lookBelow(ctx, bucket, keys[i:i+1])
				if err != nil {
					return nil, err
				}
				found = append(found, one...)
			}
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		for _, o := range l.objects {
			for len(keys) > 0 && keys[0] < o.Key {
				keys = keys[1:]
			}
			if len(keys) > 0 && keys[0] == o.Key {
				found, keys = append(found, o), keys[1:]
			}
			seen = o.Key
		}
		if only || !l.more || len(l.objects) == 0 {
			return found, nil
		}
	}
	return found, nil
}

// before returns a key that sorts just before key: the key without its last character.
func before(key string) string {
	_, n := utf8.DecodeLastRuneInString(key)
	return key[:len(key)-n]
}

// common returns the common prefix, in whole characters.
func common(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return a[:n]
}
