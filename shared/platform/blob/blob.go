// Package blob is an S3 client: ranged reads of library objects, and whole objects of the media bucket. It is the only
// storage, in the cloud and on one machine.
package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	for _, e := range []struct{ name, url string }{{"LIBRARY_S3_ENDPOINT", c.LibraryEndpoint},
		{"LIBRARY_S3_PUBLIC_ENDPOINT", c.LibraryPublic}, {"MEDIA_S3_ENDPOINT", c.MediaEndpoint}} {
		if u, err := url.Parse(e.url); err != nil || (e.url != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https")) {
			return fmt.Errorf("%s: must be an address such as http://127.0.0.1:9000, is %q", e.name, e.url)
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

// Put stores an object.
func (s *Store) Put(ctx context.Context, bucket, key, mediaType string, data []byte) error {
	_, err := s.put(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, ContentType: &mediaType,
		ContentLength: aws.Int64(int64(len(data))), Body: bytes.NewReader(data),
		CacheControl: aws.String("private, max-age=31536000, immutable")})
	return err
}

func (s *Store) put(ctx context.Context, in *s3.PutObjectInput) (etag string, err error) {
	out, err := s.open().client.PutObject(ctx, in)
	if err != nil {
		return "", explain("store", *in.Bucket, *in.Key, err)
	}
	return aws.ToString(out.ETag), nil
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
