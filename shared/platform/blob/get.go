package blob

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go/encoding/httpbinding"
)

// emptyPayload is the SHA-256 of an empty body.
const emptyPayload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// answerWithin limits the wait for the start of a response: a FIFO in a served folder never sends one.
const (
	answerWithin = 20 * time.Second
	// joinWithin limits the time for joining the parts of an upload, which a gateway over folders copies.
	joinWithin   = 10 * time.Minute
	maxIdleConns = 128
)

// attempts and pause limit the retries of a read when the store fails before it responds.
const (
	attempts = 3
	pause    = 50 * time.Millisecond
)

// getter sends GET requests. It uses the SDK's signer without the SDK's middleware, which costs more than all other
// work for a page: compare BenchmarkRange and BenchmarkRangeSDK.
type getter struct {
	client *http.Client
	// Opens a new connection per request: for retries, because a kept one may lead to a slow or broken server.
	fresh       *http.Client
	signer      *v4.Signer
	credentials aws.CredentialsProvider
	region      string
	endpoint    *url.URL // nil: AWS itself
	pathStyle   bool
	within      time.Duration // a retry must start this soon after the first try
}

// get sends one GET request. The status of the response is 200 or 206. The caller must close its body.
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

// list reads one page of a listing.
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

// readAll reads at most n bytes of a response. It allocates what Content-Length says.
func readAll(res *http.Response, n int64) ([]byte, error) {
	var b bytes.Buffer
	if said := min(res.ContentLength, n); said > 0 {
		b.Grow(int(said) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(res.Body, n))
	return b.Bytes(), err
}

// tries repeats a read up to most times while the store is unreachable, with new connections from the second try on. A
// store that is silent for a whole try is not asked again, so that the user gets a response before they, or a proxy,
// give up. Over TLS the first try may be two requests: net/http by itself repeats one whose kept connection ends
// without a response.
func (g *getter) tries(ctx context.Context, most int, read func(c *http.Client) error) error {
	client, began := g.client, time.Now()
	for n := 1; ; n++ {
		err := read(client)
		if err == nil || n == most || time.Since(began) >= g.within || ctx.Err() != nil || !Unreachable(err) {
			return err
		}
		client = g.fresh
		wait := pause << n
		if n == 1 && !errors.As(err, new(*StatusError)) { // perhaps the server just closed an idle connection
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
	req, creds, err := g.request(ctx, http.MethodGet, u, header)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Amz-Content-Sha256", emptyPayload)
	if err := g.signer.SignHTTP(ctx, creds, req, emptyPayload, "s3", g.region, time.Now(), escaped); err != nil {
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
	return nil, cmp.Or(kindOf(res.StatusCode, answer), errors.Join(answer, err))
}

// request returns a request that is to be signed, and the credentials for it.
func (g *getter) request(ctx context.Context, method string, u *url.URL, header http.Header) (*http.Request, aws.Credentials, error) {
	address := *u // signing rewrites the query
	req := &http.Request{Method: method, URL: &address, Host: u.Host, Header: header.Clone(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if req.Header == nil {
		req.Header = http.Header{}
	}
	creds, err := g.credentials.Retrieve(ctx)
	if err != nil {
		return nil, creds, fmt.Errorf("credentials of the store: %w", err)
	}
	return req.WithContext(ctx), creds, nil
}

// escaped tells the signer that paths are escaped already.
func escaped(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }

// url returns the URL of an object: below the endpoint, or on the bucket's own host at AWS. A certificate is not for
// hosts with more dots: over HTTPS such a bucket is in the path, as the SDK has it, and so are all at an IP address.
func (g *getter) url(bucket, key string) *url.URL {
	domain := ".amazonaws.com"
	if strings.HasPrefix(g.region, "cn-") {
		domain += ".cn"
	}
	u := &url.URL{Scheme: "https", Host: "s3." + g.region + domain, Path: "/"}
	if g.endpoint != nil {
		*u = *g.endpoint
	}
	base := strings.TrimSuffix(u.Path, "/") + "/"
	if g.pathStyle || u.Scheme == "https" && strings.Contains(bucket, ".") || net.ParseIP(u.Hostname()) != nil {
		base += bucket + "/"
	} else {
		u.Host = bucket + "." + u.Host
	}
	u.Path, u.RawPath = base+key, httpbinding.EscapePath(base+key, false)
	return u
}

// object returns the version that a response describes.
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
