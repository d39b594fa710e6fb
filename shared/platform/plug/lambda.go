package plug

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// byLambda invokes the function. Like the queue's requests, it is signed without the SDK's client, which would add
// megabytes to the api (https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html). Each tenant has its own
// execution environments (tenant isolation), so that no plugin finds leftovers of another tenant's.
func byLambda(c Config) func(ctx context.Context, tenant string, call []byte) (io.ReadCloser, error) {
	client, signer := direct(), v4.NewSigner()
	endpoint := cmp.Or(strings.TrimSuffix(c.Endpoint, "/"), "https://lambda."+c.Region+".amazonaws.com")
	address := endpoint + "/2015-03-31/functions/" + url.PathEscape(c.Function) + "/invocations"
	return func(ctx context.Context, tenant string, call []byte) (io.ReadCloser, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(call))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Amz-Tenant-Id", tenant)
		sum := sha256.Sum256(call)
		creds := aws.Credentials{AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
			SessionToken: os.Getenv("AWS_SESSION_TOKEN")}
		if err := signer.SignHTTP(ctx, creds, r, hex.EncodeToString(sum[:]), "lambda", c.Region, time.Now()); err != nil {
			return nil, fmt.Errorf("sign: %w", err)
		}
		return answered(client.Do(r))
	}
}
