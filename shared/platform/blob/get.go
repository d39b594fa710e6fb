package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go/encoding/httpbinding"
)

// emptyPayload is the SHA-256 of no body.
const emptyPayload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// answerWithin is how long the store may take to begin an answer: a FIFO in a served folder never does.
const (
	answerWithin = 20 * time.Second
	// joinWithin is how long it may take to join the parts of an upload: a gateway over folders copies them.
	joinWithin   = 10 * time.Minute
	maxIdleConns = 128
)

// attempts and pause bound how often a read is tried when the store fails before it answers.
const (
	attempts = 3
	pause    = 50 * time.Millisecond
)

// getter sends GET requests signed by the SDK's signer but without its layers of middleware, which cost more
// than the rest of a page's way through this process: see BenchmarkRange beside BenchmarkRangeSDK.
type getter struct {
	client      *http.Client
	fresh       *http.Client // connects anew for each request: for second tries, since a slow or broken server may be behind a kept one
	signer      *v4.Signer
	credentials aws.CredentialsProvider
	region      string
	endpoint    *url.URL // nil: AWS itself
	pathStyle   bool
	within      time.Duration // how long after the first try another may begin
}

// StatusError is an answer of the store that is neither success nor one of the failures that callers tell apart.
type StatusError struct {
	Status  int
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the store answered %d: %s", e.Status, e.Message)
}

// get sends one GET request. The answer's status is 200 or 206; its body must be closed.
func (g *getter) get(ctx context.Context, bucket, key string, header http.Header) (res *http.Response, err error) {
	err = g.tries(ctx, attempts, func(c *http.Client) error {
		res, err = g.once(ctx, c, g.url(bucket, key), header)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read s3://%s/%s: %w", bucket, key, err)
	}
	return res, nil
}

// list asks for one page of a listing.
func (g *getter) list(ctx context.Context, bucket string, query url.Values, most int) (l listing, err error) {
	u := g.url(bucket, "")
	u.RawQuery = query.Encode()
	err = g.tries(ctx, most, func(c *http.Client) error {
		res, err := g.once(ctx, c, u, nil)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		doc, err := readAll(res, maxListing)
		if err != nil {
			return err
		}
		l, err = readListing(doc)
		return err
	})
	return l, err
}

// readAll reads at most n bytes of an answer, into as much memory as it says that it needs.
func readAll(res *http.Response, n int64) ([]byte, error) {
	var b bytes.Buffer
	if said := min(res.ContentLength, n); said > 0 {
		b.Grow(int(said) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(res.Body, n))
	return b.Bytes(), err
}

// tries tries a read at most so many times while the store is not reachable, from the second on over connections of
// their own. A store that is silent to the end of a try is not asked again: who waits for a page or a folder has an
// answer before they, or a proxy, give up.
func (g *getter) tries(ctx context.Context, most int, read func(c *http.Client) error) error {
	client, began := g.client, time.Now()
	for n := 1; ; n++ {
		err := read(client)
		if err == nil || n == most || time.Since(began) >= g.within || ctx.Err() != nil || !Unreachable(err) {
			return err
		}
		client = g.fresh
		wait := pause << n
		if n == 1 && !errors.As(err, new(*StatusError)) { // perhaps the server only closed the connection when it was idle
			wait = 0
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (g *getter) once(ctx context.Context, client *http.Client, u *url.URL, header http.Header) (*http.Response, error) {
	address := *u // signing rewrites the query
	req := (&http.Request{Method: http.MethodGet, URL: &address, Header: header.Clone(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Host = req.URL.Host
	req.Header.Set("X-Amz-Content-Sha256", emptyPayload)
	creds, err := g.credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("credentials of the store: %w", err)
	}
	err = g.signer.SignHTTP(ctx, creds, req, emptyPayload, "s3", g.region, time.Now(), func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK || res.StatusCode == http.StatusPartialContent {
		if _, ours := res.Body.(*body); !ours {
			res.Body = whole{res.Body}
		}
		return res, nil
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1000))
	answer := &StatusError{res.StatusCode, string(text)}
	switch res.StatusCode {
	case http.StatusNotFound:
		return nil, ErrNotFound
	case http.StatusPreconditionFailed:
		return nil, ErrChanged
	case http.StatusRequestedRangeNotSatisfiable:
		return nil, ErrRange
	case http.StatusForbidden, http.StatusUnauthorized:
		if strings.Contains(answer.Message, "<Code>InvalidObjectState</Code>") {
			return nil, errors.Join(ErrArchived, answer)
		}
		return nil, errors.Join(ErrDenied, answer)
	}
	return nil, errors.Join(answer, err)
}

// url is the address of an object: below the endpoint, or on the bucket's own host at AWS.
func (g *getter) url(bucket, key string) *url.URL {
	u := &url.URL{Scheme: "https", Host: "s3." + g.region + ".amazonaws.com", Path: "/"}
	if g.endpoint != nil {
		*u = *g.endpoint
	}
	base := strings.TrimSuffix(u.Path, "/") + "/"
	if g.pathStyle {
		base += bucket + "/"
	} else {
		u.Host = bucket + "." + u.Host
	}
	u.Path, u.RawPath = base+key, httpbinding.EscapePath(base+key, false)
	return u
}

// object is what an answer says of the version that it is of.
func object(key string, res *http.Response) Object {
	o := Object{Key: key, Size: res.ContentLength, ETag: res.Header.Get("ETag")}
	if t, err := http.ParseTime(res.Header.Get("Last-Modified")); err == nil {
		o.Modified = t
	}
	if total, ok := totalOf(res.Header.Get("Content-Range")); ok {
		o.Size = total
	}
	return o
}
