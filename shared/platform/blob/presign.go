package blob

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// unsigned stands for the hash of an unknown body.
const unsigned = "UNSIGNED-PAYLOAD"

// PutRequest is one PUT request that a client may send.
type PutRequest struct {
	Bucket, Key string
	Size        int64       // size of the body; no other size is accepted
	Header      http.Header // must be sent exactly like this
	Part        int         // number in a multipart upload, from 1; 0 is a whole object
	ID          string      // of the multipart upload
}

// Presign returns a URL for exactly this request. Whoever has it may send that until the URL expires, and nothing else.
// The signature covers key, size and headers.
func (s *Store) Presign(ctx context.Context, u PutRequest, life time.Duration) (string, error) {
	g := *s.open().read
	if public := s.open().public; public != nil {
		g.endpoint = public
	}
	at := g.url(u.Bucket, u.Key)
	if u.Part > 0 {
		at.RawQuery = url.Values{"partNumber": {strconv.Itoa(u.Part)}, "uploadId": {u.ID}}.Encode()
	}
	req, creds, err := g.request(ctx, http.MethodPut, at, u.Header)
	if err != nil {
		return "", err
	}
	req.ContentLength = u.Size
	return g.presign(req, creds, life)
}

// PresignGet returns a URL with which anyone may read the object for this long.
func (s *Store) PresignGet(ctx context.Context, bucket, key string, life time.Duration) (string, error) {
	g := s.open().read
	req, creds, err := g.request(ctx, http.MethodGet, g.url(bucket, key), nil)
	if err != nil {
		return "", err
	}
	return g.presign(req, creds, life)
}

func (g *getter) presign(req *http.Request, creds aws.Credentials, life time.Duration) (string, error) {
	q := req.URL.Query()
	q.Set("X-Amz-Expires", strconv.Itoa(int(life.Seconds())))
	req.URL.RawQuery = q.Encode()
	signed, _, err := g.signer.PresignHTTP(req.Context(), creds, req, unsigned, "s3", g.region, time.Now(), escaped)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return signed, nil
}
