// Package blob is an S3 client: ranged reads of library objects, and whole objects of the media bucket. It is the only
// storage, in the cloud and on one machine.
package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Config locates the two stores. An empty endpoint means AWS. Credentials come from the standard variables
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, as Lambda sets them.
type Config struct {
	LibraryEndpoint string `env:"LIBRARY_S3_ENDPOINT"`
	LibraryPublic   string `env:"LIBRARY_S3_PUBLIC_ENDPOINT"` // the same server at its public address, for uploads
	MediaEndpoint   string `env:"MEDIA_S3_ENDPOINT"`
	MediaBucket     string `env:"MEDIA_BUCKET" envDefault:"longbox-media"`
	Region          string `env:"AWS_REGION" envDefault:"us-east-1"`
	PathStyle       bool   `env:"S3_PATH_STYLE" envDefault:"false"`
}

// Library returns the store of the library roots. Longbox only reads there; users upload with URLs from Presign.
func (c Config) Library() *Store { return lazily(c.LibraryEndpoint, c.LibraryPublic, c) }

// Media returns the store of all derived objects.
func (c Config) Media() *Store { return lazily(c.MediaEndpoint, "", c) }

// Store is an S3 endpoint. Its clients are created on first use, so that the start of a function does not wait for
// them.
type Store struct{ open func() clients }

type clients struct {
	client *s3.Client
	join   func(*s3.Options) // for calls that join the parts of an upload
	read   *getter
	public *url.URL // public address of the endpoint; nil: the same as endpoint
	near   bool
}

// Near reports whether the store runs on this machine and shares its CPUs.
func (s *Store) Near() bool { return s.open().near }

func lazily(endpoint, public string, c Config) *Store {
	return &Store{open: sync.OnceValue(func() clients {
		opened := open(endpoint, c, answerWithin)
		if public != "" {
			opened.public, _ = url.Parse(public) // Validate has checked it
		}
		return opened
	})}
}

// open creates the clients of a store. A request fails when the store accepts none of its bytes, or sends none of the
// response, for this long.
func open(endpoint string, c Config, within time.Duration) clients {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 2*maxIdleConns, maxIdleConns
		t.ResponseHeaderTimeout = within
		t.DialContext = taking(t.DialContext, within)
		t.DisableCompression = true
	})
	creds := aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider(
		os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")))
	o := s3.Options{
		Region:                     c.Region,
		UsePathStyle:               c.PathStyle,
		Credentials:                creds,
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
		Retryer:                    patience(),
		HTTPClient:                 &prompt{client.Do, within},
	}
	fresh := client.GetTransport().Clone()
	fresh.DisableKeepAlives = true
	transport, anew := http.RoundTripper(&prompt{client.GetTransport().RoundTrip, within}), http.RoundTripper(&prompt{fresh.RoundTrip, within})
	if strings.HasPrefix(endpoint, "http://") {
		often, once := newWire(), newWire()
		often.within, once.within, once.maxIdle = within, within, 0
		transport, anew = often, once
	}
	read := &getter{client: &http.Client{Transport: transport}, fresh: &http.Client{Transport: anew}, signer: v4.NewSigner(), credentials: creds,
		region: c.Region, pathStyle: c.PathStyle, within: within}
	if endpoint != "" {
		o.BaseEndpoint = aws.String(endpoint)
		read.endpoint, _ = url.Parse(endpoint) // Validate has checked it
	}
	patient := client.WithTransportOptions(func(t *http.Transport) { t.ResponseHeaderTimeout = joinWithin })
	return clients{client: s3.New(o), join: func(o *s3.Options) { o.HTTPClient = &prompt{patient.Do, joinWithin} }, read: read, near: loopback(read.endpoint)}
}

// patience retries what the SDK retries, and also status 429: some stores send it where S3 sends 503.
func patience() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.Retryables = append(o.Retryables, retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusTooManyRequests: {}}})
	})
}

func loopback(endpoint *url.URL) bool {
	if endpoint == nil {
		return false
	}
	ip, err := netip.ParseAddr(endpoint.Hostname())
	return endpoint.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// Validate returns an error that names an invalid URL setting.
func (c Config) Validate() error {
	for name, v := range map[string]string{"LIBRARY_S3_ENDPOINT": c.LibraryEndpoint,
		"LIBRARY_S3_PUBLIC_ENDPOINT": c.LibraryPublic, "MEDIA_S3_ENDPOINT": c.MediaEndpoint} {
		if u, err := url.Parse(v); err != nil || (v != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https")) {
			return fmt.Errorf("%s: must be an address such as http://127.0.0.1:9000, is %q", name, v)
		}
	}
	return nil
}

// Object is an object as listings and responses describe it. If the store has no ETag, it is "", and size and
// modification time identify the version.
type Object struct {
	Key      string
	Size     int64
	ETag     string
	Modified time.Time
}

// Errors that callers distinguish. Any other error means that the store is unreachable or refuses the request.
var (
	ErrNotFound = errors.New("the object does not exist")
	ErrChanged  = errors.New("the object has changed")
	ErrRange    = errors.New("the object is shorter than the range")
	ErrDenied   = errors.New("the store refuses access")
	ErrClosed   = errors.New("the store lists the object but cannot open it")
	ErrArchived = errors.New("the store has archived the object") // Amazon S3 Glacier: it must be restored first
	ErrBusy     = errors.New("the store is writing the object for another request")
	// ErrCut is not io.ErrUnexpectedEOF, which format readers return for a truncated file.
	ErrCut = errors.New("the store's answer ended early")
)

// Why explains a failed read of a listed object. A gateway over folders answers 500 for a file that it may not open.
// From what the gateway still shows, Why returns ErrChanged for a link, and ErrClosed for a file that cannot be read.
func (s *Store) Why(ctx context.Context, bucket string, listed Object, err error) error {
	var answer *StatusError
	if !errors.As(err, &answer) || answer.Status != http.StatusInternalServerError {
		return err
	}
	shown, e := s.open().client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &bucket, Key: &listed.Key})
	switch {
	case e != nil: // the store itself fails
		return err
	case aws.ToInt64(shown.ContentLength) != listed.Size:
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return fmt.Errorf("%w: %w", ErrClosed, err)
}

// Tail reads the last len(into) bytes of an object, or all of a shorter one, with one request. It also returns the
// version. The returned bytes are a part of into.
func (s *Store) Tail(ctx context.Context, bucket, key string, into []byte) ([]byte, Object, error) {
	res, err := s.open().read.get(ctx, bucket, key, http.Header{"Range": {fmt.Sprintf("bytes=-%d", len(into))}})
	if err != nil {
		return nil, Object{}, err
	}
	defer res.Body.Close()
	o := object(key, res)
	n, err := io.ReadFull(res.Body, into)
	if err == nil {
		_, err = io.ReadFull(res.Body, make([]byte, 1)) // reads to EOF, which frees the connection
	}
	switch {
	case err == nil: // the store ignored the range
		return nil, o, fmt.Errorf("read s3://%s/%s: %w", bucket, key, errRanges)
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF) && int64(n) == res.ContentLength:
		return into[:n], o, nil
	}
	return nil, o, fmt.Errorf("read s3://%s/%s: %w", bucket, key, err)
}

// Range opens n bytes from offset of exactly this version of the object, with one request. It returns ErrChanged if the
// version is another one by now. For n < 1 there is no request, because a range cannot be empty.
func (s *Store) Range(ctx context.Context, bucket string, o Object, offset, n int64) (io.ReadCloser, error) {
	if n < 1 {
		return http.NoBody, nil
	}
	header := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", offset, offset+n-1)}}
	if o.ETag != "" {
		header.Set("If-Match", o.ETag)
	} else if !o.Modified.IsZero() {
		// Listings have whole seconds, the comparison is finer: one second later is still this version.
		header.Set("If-Unmodified-Since", o.Modified.Add(time.Second).UTC().Format(http.TimeFormat))
	}
	res, err := s.open().read.get(ctx, bucket, o.Key, header)
	if err != nil {
		return nil, err
	}
	kind := error(nil)
	switch total, ok := totalOf(res.Header.Get("Content-Range")); {
	case ok && o.Size > 0 && total != o.Size:
		kind = ErrChanged
	case res.StatusCode == http.StatusOK && (offset > 0 || n != res.ContentLength):
		kind = errRanges
	case res.ContentLength >= 0 && res.ContentLength < n:
		kind = ErrRange
	}
	if kind != nil {
		res.Body.Close()
		return nil, fmt.Errorf("read s3://%s/%s: %w", bucket, o.Key, kind)
	}
	return res.Body, nil
}

// ReadRange reads a Range into memory.
func (s *Store) ReadRange(ctx context.Context, bucket string, o Object, offset, n int64) ([]byte, error) {
	r, err := s.Range(ctx, bucket, o, offset, n)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("read s3://%s/%s: %w", bucket, o.Key, cut(err))
	}
	return data, nil
}

// Get opens a whole object with one request.
func (s *Store) Get(ctx context.Context, bucket, key string) (io.ReadCloser, Object, error) {
	res, err := s.open().read.get(ctx, bucket, key, nil)
	if err != nil {
		return nil, Object{}, err
	}
	return res.Body, object(key, res), nil
}

// Put stores an object.
func (s *Store) Put(ctx context.Context, bucket, key, mediaType string, data []byte) error {
	_, err := s.open().client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, ContentType: &mediaType,
		ContentLength: aws.Int64(int64(len(data))), Body: bytes.NewReader(data),
		CacheControl: aws.String("private, max-age=31536000, immutable")})
	if err != nil {
		return explain("store", bucket, key, err)
	}
	return nil
}

// Delete removes an object. A missing one is no error.
func (s *Store) Delete(ctx context.Context, bucket, key string) error {
	if _, err := s.open().client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key}); err != nil {
		if err := explain("delete", bucket, key, err); !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

// explain wraps err with what failed where, and maps it to the errors that callers distinguish.
func explain(what, bucket, key string, err error) error {
	kind := err
	var re *smithyhttp.ResponseError
	var api smithy.APIError
	switch {
	case errors.As(err, &re):
		switch re.HTTPStatusCode() {
		case http.StatusNotFound:
			kind = ErrNotFound
		case http.StatusPreconditionFailed:
			kind = ErrChanged
		case http.StatusRequestedRangeNotSatisfiable:
			kind = ErrRange
		case http.StatusForbidden, http.StatusUnauthorized:
			kind = fmt.Errorf("%w: %w", ErrDenied, err)
		case http.StatusConflict:
			kind = fmt.Errorf("%w: %w", ErrBusy, err)
		}
	case errors.As(err, &api) && api.ErrorCode() == "NoSuchKey":
		kind = ErrNotFound
	}
	return fmt.Errorf("%s s3://%s/%s: %w", what, bucket, key, kind)
}

// Lost reports whether a read failed because the object is gone or has changed.
func Lost(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrChanged) || errors.Is(err, ErrRange)
}

// Unreachable reports whether err is a failure of the store or the connection, not of one object.
func Unreachable(err error) bool {
	var re *smithyhttp.ResponseError
	var answer *StatusError
	var ne net.Error
	switch {
	case errors.Is(err, ErrCut): // whatever the response began with
		return true
	case errors.As(err, &answer):
		return ailing(answer.Status)
	case errors.As(err, &re) && re.HTTPStatusCode() != 0: // without a status there was no response
		return ailing(re.HTTPStatusCode())
	}
	return errors.As(err, &ne) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// ailing reports whether a status is about the store, not about the request.
func ailing(status int) bool { return status >= 500 || status == http.StatusTooManyRequests }

// errRanges means that a store, or a proxy in front of it, answers with the whole object.
var errRanges = errors.New("the store does not support ranges")

// cut maps the end of a body that is not complete to ErrCut.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return err
}

// whole is a net/http body that returns ErrCut when it ends early.
type whole struct{ io.ReadCloser }

func (b whole) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrCut
	}
	return n, err
}

// totalOf returns the size after the slash of a Content-Range (RFC 9110 section 14.4).
func totalOf(contentRange string) (int64, bool) {
	_, after, ok := strings.Cut(contentRange, "/")
	if !ok {
		return 0, false
	}
	var n int64
	if _, err := fmt.Sscanf(after, "%d", &n); err != nil {
		return 0, false
	}
	return n, true
}
