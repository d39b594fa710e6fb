package main

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sort"
	"strings"
	"time"
)

// canned is an S3 endpoint that lists keys made up by sparseName, a thousand a page, and holds no object: what a scan
// of a very large bucket costs apart from the store.
type canned struct {
	*httptest.Server
	bucket string
	keys   []string // sorted
}

// cannedSize, cannedTag and cannedTime are those of every object.
const cannedSize, cannedTag = sparsePages * sparsePage, `"00000000000000000000000000000000"`

var cannedTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newCanned(bucket, folder string, n int) *canned {
	c := &canned{bucket: bucket, keys: make([]string, n)}
	for i := range n {
		c.keys[i] = folder + "/" + sparseName(i)
	}
	slices.Sort(c.keys)
	c.Server = httptest.NewServer(http.HandlerFunc(c.list))
	return c
}

type listing struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name, Prefix          string
	KeyCount, MaxKeys     int
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []listed
	CommonPrefixes        []folder
}

type listed struct {
	Key, LastModified, ETag string
	Size                    int
	StorageClass            string
}

type folder struct{ Prefix string }

// list answers ListObjectsV2 with prefix, delimiter "/", start-after and continuation-token.
func (c *canned) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if r.Method != http.MethodGet || q.Get("list-type") != "2" || strings.Trim(r.URL.Path, "/") != c.bucket {
		http.Error(w, fmt.Sprintf("%s %s is not canned", r.Method, r.URL), http.StatusNotImplemented)
		return
	}
	const page = 1000
	prefix, after := q.Get("prefix"), max(q.Get("start-after"), q.Get("continuation-token"))
	out := listing{Name: c.bucket, Prefix: prefix, MaxKeys: page}
	i := sort.SearchStrings(c.keys, max(prefix, after))
	for i < len(c.keys) && c.keys[i] <= after {
		i++
	}
	last := ""
	for ; i < len(c.keys) && strings.HasPrefix(c.keys[i], prefix); i++ {
		if out.KeyCount == page {
			out.IsTruncated, out.NextContinuationToken = true, last
			break
		}
		last = c.keys[i]
		out.KeyCount++
		if below, _, ok := strings.Cut(c.keys[i][len(prefix):], "/"); ok && q.Get("delimiter") == "/" {
			out.CommonPrefixes = append(out.CommonPrefixes, folder{prefix + below + "/"})
			i = sort.SearchStrings(c.keys, prefix+below+"0") - 1 // "0" follows "/"
			last = prefix + below + "0"
			continue
		}
		out.Contents = append(out.Contents, listed{c.keys[i], cannedTime.Format("2006-01-02T15:04:05.000Z"), cannedTag, cannedSize, "STANDARD"})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(out) // the worker reports an answer that is cut off
}
