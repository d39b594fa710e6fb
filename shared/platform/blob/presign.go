package blob

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// unsigned stands for the hash of an unknown body.
const unsigned = "UNSIGNED-PAYLOAD"

// Upload is one PUT request that a client may send.
type Upload struct {
	Bucket, Key string
	Size        int64       // size of the body; no other size is accepted
	Header      http.Header // must be sent exactly like this
	Part        int         // number in a multipart upload, from 1; 0 is a whole object
	ID          string      // of the multipart upload
}

// Presign returns a URL for exactly this upload. Whoever has it may send the upload until the URL expires, and nothing
// else. The signature covers key, size and headers.
func (s *Store) Presign(ctx context.Context, u Upload, life time.Duration) (string, error) {
	g := *s.open().read
	if public := s.open().public; public != nil {
		g.endpoint = public
	}
	at := g.url(u.Bucket, u.Key)
	q := url.Values{"X-Amz-Expires": {strconv.Itoa(int(life.Seconds()))}}
	if u.Part > 0 {
		q.Set("partNumber", strconv.Itoa(u.Part))
		q.Set("uploadId", u.ID)
	}
	at.RawQuery = q.Encode()
	req := (&http.Request{Method: http.MethodPut, URL: at, Host: at.Host, Header: u.Header.Clone(), ContentLength: u.Size}).WithContext(ctx)
	if req.Header == nil {
		req.Header = http.Header{}
	}
	creds, err := g.credentials.Retrieve(ctx)
	if err != nil {
		return "", fmt.Errorf("credentials of the store: %w", err)
	}
	signed, _, err := g.signer.PresignHTTP(ctx, creds, req, unsigned, "s3", g.region, time.Now(), func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err != nil {
		return "", fmt.Errorf("sign an upload: %w", err)
	}
	return signed, nil
}
