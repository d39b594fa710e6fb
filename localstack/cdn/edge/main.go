// Command edge serves the requests of the nginx that stands in for CloudFront: it verifies signed URLs and reads
// objects of the media bucket. It first writes nginx's configuration. Its settings are those of the media function
// (MEDIA_S3_ENDPOINT, CDN_URL and so on). CDN_URL sets the port of nginx on 127.0.0.1; this program uses the next two
// ports.
package main

import (
	"context"
	"crypto/rsa"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/caarlos0/env/v11"

	edge "github.com/longbox/longbox/localstack/cdn"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/cdn"
)

type config struct {
	CDN  cdn.Config
	Blob blob.Config
}

func main() {
	dir := flag.String("dir", ".", "folder for nginx.conf, and for what nginx writes")
	media := flag.String("media", "127.0.0.1:8082", "address of the media function")
	write := flag.Bool("write", false, "only write nginx.conf")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *dir, *media, *write); err != nil {
		log.Fatal("edge: ", err)
	}
}

func run(ctx context.Context, dir, media string, write bool) error {
	c, err := env.ParseAs[config]()
	if err != nil {
		return err
	}
	if err := c.CDN.Validate(); err != nil {
		return err
	}
	public, err := c.CDN.PublicKey()
	if err != nil {
		return err
	}
	address, err := url.Parse(c.CDN.URL)
	if err != nil {
		return fmt.Errorf("CDN_URL: %w", err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil || address.Hostname() != "127.0.0.1" {
		return fmt.Errorf("CDN_URL: must be http://127.0.0.1:<port> here, is %q", c.CDN.URL)
	}
	verify, bucket := local(port+1), local(port+2)
	if _, err := (edge.Config{Dir: dir, Port: port, Verify: verify, Bucket: bucket, Media: media,
		Secret: c.CDN.Origin.Secrets[0], Prefix: "/cdn"}).Write(); err != nil || write {
		return err
	}
	objects, err := edge.Bucket(c.Blob.MediaEndpoint, c.Blob.MediaBucket, c.Blob.Region,
		credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""))
	if err != nil {
		return err
	}
	verifier := edge.Verifier{Scheme: address.Scheme, Keys: map[string]*rsa.PublicKey{c.CDN.KeyID: public}, Now: time.Now}
	return serve(ctx, map[string]http.Handler{verify: verifier, bucket: objects})
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// serve serves each address until ctx ends or one of them fails.
func serve(ctx context.Context, handlers map[string]http.Handler) error {
	failed := make(chan error, len(handlers))
	for address, h := range handlers {
		srv := &http.Server{Addr: address, Handler: h, ReadHeaderTimeout: 10 * time.Second}
		defer srv.Close()
		go func() { failed <- srv.ListenAndServe() }()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}
