package testkit

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"

	edge "github.com/longbox/longbox/localstack/cdn"
	"github.com/longbox/longbox/shared/platform/cdn"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit/bound"
)

// CDN is nginx as CloudFront, in front of a media bucket and a media function, which is set later.
type CDN struct {
	Config cdn.Config // for the functions behind it
	URL    string

	dir   string
	media atomic.Pointer[http.Handler]
	ahead atomic.Int64 // seconds by which the edge's clock is ahead
	asked sync.Map     // number of requests to media by path
}

// cdnKey is shared by all tests of a program: generating it takes a while.
var cdnKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// StartCDN starts a CDN over the media bucket of s3.
func StartCDN(t testing.TB, s3 *S3) *CDN {
	t.Helper()
	program, err := edge.Program()
	if err != nil {
		t.Fatalf("the CDN for tests: %v", err)
	}
	key, err := cdnKey()
	if err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "longbox-cdn-")
	if err != nil {
		t.Fatal(err)
	}
	if err := giveAway(dir); err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	c := &CDN{dir: dir, URL: "http://127.0.0.1:" + strconv.Itoa(port)}
	c.Config = cdn.Config{Delivery: cdn.Redirect, URL: c.URL, KeyID: "KTEST", PrivateKey: string(pem.EncodeToMemory(block)),
		Origin: httpapi.Origin{Secrets: []string{strings.Repeat("origin", 8)}}}
	serve := func(h http.Handler) string {
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		return srv.Listener.Addr().String()
	}
	bucket, err := edge.Bucket(s3.Config.MediaEndpoint, s3.Config.MediaBucket, s3.Config.Region,
		credentials.NewStaticCredentialsProvider(s3Access, s3Secret, ""))
	if err != nil {
		t.Fatal(err)
	}
	config := edge.Config{Dir: dir, Port: port, Bucket: serve(bucket), Media: serve(http.HandlerFunc(c.toMedia)),
		Secret: c.Config.Origin.Secrets[0], Prefix: "/cdn",
		Verify: serve(edge.Verifier{Scheme: "http", Keys: map[string]*rsa.PublicKey{c.Config.KeyID: &key.PublicKey},
			Now: func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load()) * time.Second) }})}
	args, err := config.Write()
	if err != nil {
		t.Fatal(err)
	}
	stop, err := bound.Start(asUser(exec.Command(program, args...)), "INT", dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if err := waitFor(10*time.Second, func() error {
		res, err := http.Get(c.URL + "/")
		if err != nil {
			return err
		}
		return res.Body.Close()
	}); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "error.log"))
		t.Fatalf("nginx: %v: %s", err, log)
	}
	return c
}

// Serve sets the media function.
func (c *CDN) Serve(media http.Handler) { c.media.Store(&media) }

// Ahead sets the edge's clock ahead.
func (c *CDN) Ahead(d time.Duration) { c.ahead.Store(int64(d / time.Second)) }

func (c *CDN) toMedia(w http.ResponseWriter, r *http.Request) {
	media := c.media.Load()
	if media == nil {
		http.Error(w, "there is no media function yet", http.StatusServiceUnavailable)
		return
	}
	n, _ := c.asked.LoadOrStore(r.URL.Path, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	(*media).ServeHTTP(w, r)
}

// Asked returns how often the edge requested a path from media.
func (c *CDN) Asked(path string) int64 {
	n, ok := c.asked.Load("/cdn" + path)
	if !ok {
		return 0
	}
	return n.(*atomic.Int64).Load()
}

// Log returns the edge's log: cache status, status, method, path, bytes.
func (c *CDN) Log(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, "access.log"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
