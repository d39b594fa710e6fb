// Package gateway runs the two S3 gateways of the one-machine system: one for the media bucket, to which Longbox
// writes, and a read-only one for the library folders.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/longbox/longbox/localstack/account"
	"github.com/longbox/longbox/localstack/library"
	"github.com/longbox/longbox/localstack/secret"
	"github.com/longbox/longbox/localstack/supervise"
	"github.com/longbox/longbox/shared/platform/confine"
)

// Bucket is the media bucket's name.
const Bucket = "longbox-media"

// Region is the region both gateways answer for.
const Region = "us-east-1"

// Tuning of the gateway. By default it allocates a buffer of 1 MB per range request. With its small heap this alone
// causes a garbage collection every few requests. With these settings, the last 64 KB of a book take 0.2 ms of CPU
// instead of 0.8 to 1.1, and a page of 1.4 MB takes 0.65 ms instead of 1.4 to 1.8.
const (
	bufferSize = "65536"
	garbage    = "GOGC=400"
)

// Gateway is one gateway process.
type Gateway struct {
	name    string
	program string
	self    string // this program, which confines the gateway
	port    int
	backend []string
	dir     string
	readAll bool
	roots   []library.Root // roots that it may read when confined
	seen    view           // of the roots at its last start
	renew   chan string
	account account.Account
	secrets secret.Set
}

// Program finds the gateway in the tools folder of the clone, otherwise in PATH.
func Program(tools string) (string, error) {
	own := filepath.Join(tools, "versitygw")
	if _, err := os.Stat(own); err == nil {
		return own, nil
	}
	found, err := exec.LookPath("versitygw")
	if err != nil {
		return "", fmt.Errorf("no S3 gateway (versitygw) in %s or on the PATH: run make tools", tools)
	}
	return found, nil
}

// Media is the read-write gateway over <dataDir>/s3/media. It keeps object metadata in a separate folder, so that the
// file system needs no extended attributes.
func Media(dataDir, program string, port int, a account.Account, s secret.Set) (*Gateway, error) {
	dir := filepath.Join(dataDir, "s3")
	media, meta := filepath.Join(dir, "media"), filepath.Join(dir, "meta")
	for _, folder := range []string{dir, media, meta} {
		if err := a.Folder(folder); err != nil {
			return nil, fmt.Errorf("media bucket: %w", err)
		}
	}
	return &Gateway{
		name: "media-s3", program: program, port: port, dir: dir, account: a, secrets: s,
		// There is only one writer, so no lock files are needed.
		backend: []string{"posix", "--io-buffer-size", bufferSize, "--sidecar", meta, "--disable-object-lock-file", media},
	}, nil
}

// Library is the read-only gateway over the roots. Three independent measures prevent writes: the gateway refuses them,
// the kernel refuses them (see confine), and when started as root it runs as a user who may read everything and write
// nothing. It follows symbolic links; the kernel refuses files outside the roots.
func Library(dataDir, program string, port int, roots []library.Root, a account.Account, s secret.Set) (*Gateway, error) {
	dir := filepath.Join(dataDir, "roots")
	if err := removeLinks(dir); err != nil {
		return nil, fmt.Errorf("library roots: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("library roots: %w", err)
	}
	for _, r := range roots {
		if err := os.Symlink(r.Folder, filepath.Join(dir, r.Bucket)); err != nil {
			return nil, fmt.Errorf("library roots: %w", err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("library gateway: %w", err)
	}
	return &Gateway{
		name: "library-s3", program: program, self: self, port: port, dir: dir, account: a, secrets: s, readAll: true,
		roots: roots, seen: look(roots), renew: make(chan string),
		backend: []string{"posix", "--io-buffer-size", bufferSize, "--bucketlinks", "--nometa", dir},
	}, nil
}

// removeLinks removes the folder of links from an earlier version, and nothing else: in a DATA_DIR of the user's
// choice, a folder of this name may hold books.
func removeLinks(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.Type()&os.ModeSymlink == 0 {
			return fmt.Errorf("%s was not created by Longbox, which rebuilds its folder at every start: move it elsewhere, or choose another DATA_DIR", path)
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return os.Remove(dir)
}

// Endpoint returns the gateway's URL.
func (g *Gateway) Endpoint() string { return "http://" + g.address() }

func (g *Gateway) address() string { return "127.0.0.1:" + strconv.Itoa(g.port) }

// Spec returns how to run the gateway. It has nothing to save at its end: writes are on disk before the response.
func (g *Gateway) Spec() supervise.Spec {
	args := []string{"--port", g.address(), "--region", Region, "--keep-alive", "--quiet", "--health", "/health"}
	if g.readAll {
		args = append(args, "--readonly")
	}
	path, args := g.program, append(args, g.backend...)
	if len(g.roots) > 0 && g.Confined() == nil {
		path, args = confine.Command(g.self, path, confine.Rules{Read: folders(g.roots), List: true}, args)
	}
	return supervise.Spec{
		Name: g.name, Path: path, Args: args, Dir: g.dir, Renew: g.renew,
		Env: append(supervise.Environment(), garbage,
			"ROOT_ACCESS_KEY_ID="+g.secrets.S3AccessKey, "ROOT_SECRET_ACCESS_KEY="+g.secrets.S3SecretKey),
		Account: g.account, ReadAll: g.readAll, Quiet: true,
		Stop: syscall.SIGTERM, Grace: 3 * time.Second, Orphan: syscall.SIGKILL,
		Drain: 15 * time.Second, // it closes running requests after ten by itself
		Ready: supervise.Healthy(g.Endpoint() + "/health"), Patience: 30 * time.Second,
	}
}

// Client returns an S3 client for the gateway.
func (g *Gateway) Client() *s3.Client {
	return s3.New(s3.Options{
		Region: Region, BaseEndpoint: aws.String(g.Endpoint()), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(g.secrets.S3AccessKey, g.secrets.S3SecretKey, ""),
		HTTPClient:  &http.Client{Timeout: 30 * time.Second},
	})
}

// List lists one entry of a root, to see whether the gateway may read it.
func (g *Gateway) List(ctx context.Context, r library.Root) error {
	_, err := g.Client().ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &r.Bucket, Delimiter: aws.String("/"), MaxKeys: aws.Int32(1)},
		func(o *s3.Options) { o.RetryMaxAttempts = 1 })
	return err
}

// EnsureBucket creates the media bucket if it is missing.
func (g *Gateway) EnsureBucket(ctx context.Context) error {
	_, err := g.Client().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(Bucket)})
	var owned *types.BucketAlreadyOwnedByYou
	if err != nil && !errors.As(err, &owned) {
		return fmt.Errorf("media bucket: %w", err)
	}
	return nil
}
