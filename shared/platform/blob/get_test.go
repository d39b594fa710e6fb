package blob

import (
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// An object has the host and path that the SDK gives it.
func TestURLs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ region, endpoint, bucket string }{
		{"eu-central-1", "", "comics"},
		{"eu-central-1", "", "comics.example.org"},
		{"cn-north-1", "", "comics"},
		{"us-east-1", "https://store.example.org", "comics"},
		{"us-east-1", "https://store.example.org", "comics.example.org"},
		{"us-east-1", "http://store.example.org:9000", "comics"},
		{"us-east-1", "http://store.example.org:9000", "comics.example.org"},
		{"us-east-1", "http://10.0.0.5:9000", "comics"},
		{"us-east-1", "http://[::1]:9000", "comics"},
	} {
		const key = "A folder/1 + 2.cbz"
		g := &getter{region: c.region}
		o := s3.Options{Region: c.region, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
		if c.endpoint != "" {
			o.BaseEndpoint = &c.endpoint
			g.endpoint, _ = url.Parse(c.endpoint)
		}
		signed, err := s3.NewPresignClient(s3.New(o)).PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: &c.bucket, Key: aws.String(key)})
		if err != nil {
			t.Fatal(err)
		}
		want, err := url.Parse(signed.URL)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.url(c.bucket, key); got.Scheme != want.Scheme || got.Host != want.Host || got.EscapedPath() != want.EscapedPath() {
			t.Errorf("%+v: %s, the SDK has %s", c, got, want.Scheme+"://"+want.Host+want.EscapedPath())
		}
	}
}
