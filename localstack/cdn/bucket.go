package cdn

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// emptyPayload is the SHA-256 of an empty body.
const emptyPayload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// Bucket answers GET /<key> with an object of a bucket. It signs like CloudFront's origin access control. endpoint is
// an S3 server with the bucket in the path.
func Bucket(endpoint, bucket, region string, credentials aws.CredentialsProvider) (http.Handler, error) {
	target, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("cdn: endpoint of the bucket: %w", err)
	}
	signer := v4.NewSigner()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.DisableCompression = 64, true
	return &httputil.ReverseProxy{
		Transport: signing(func(r *http.Request) (*http.Response, error) {
			creds, err := credentials.Retrieve(r.Context())
			if err != nil {
				return nil, err
			}
			r.Header.Set("X-Amz-Content-Sha256", emptyPayload)
			if err := signer.SignHTTP(r.Context(), creds, r, emptyPayload, "s3", region, time.Now()); err != nil {
				return nil, err
			}
			return transport.RoundTrip(r)
		}),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = &url.URL{Scheme: target.Scheme, Host: target.Host, Path: "/" + bucket + p.In.URL.Path}
			p.Out.Host, p.Out.Header = target.Host, http.Header{}
		},
		ModifyResponse: func(res *http.Response) error {
			res.Header.Set("X-Cdn-Origin", "bucket")
			return nil
		},
	}, nil
}

type signing func(r *http.Request) (*http.Response, error)

func (s signing) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }
