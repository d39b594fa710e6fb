package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"

	edge "github.com/longbox/longbox/localstack/cdn"
	"github.com/longbox/longbox/localstack/gateway"
	"github.com/longbox/longbox/localstack/port"
	"github.com/longbox/longbox/localstack/supervise"
)

// cdnEdge is nginx as the CDN, with the functions behind it.
type cdnEdge struct {
	s             *system
	api, function *function // function is media, as readers reach it directly
	media         *counter  // media, as the CDN reaches it
	http          *http.Client
	seen          sync.Map // signed URLs that were answered

	stop []func()
}

func (e *cdnEdge) close() {
	for i := len(e.stop) - 1; i >= 0; i-- {
		e.stop[i]()
	}
}

func (s *system) startEdge(ctx context.Context) (e *cdnEdge, err error) {
	e = &cdnEdge{s: s, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	program, err := edge.Program()
	if err != nil {
		return nil, err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	ports, err := port.Free(1)
	if err != nil {
		return nil, err
	}
	const keyID = "KBENCH"
	secret, url := strings.Repeat("origin", 8), "http://127.0.0.1:"+strconv.Itoa(ports[0])
	functions := map[string]*function{}
	for name, env := range map[string][]string{"api": nil, "worker": nil, "media": {"DELIVERY=redirect",
		"CDN_URL=" + url, "CDN_KEY_ID=" + keyID, "ORIGIN_SECRET=" + secret,
		"CDN_PRIVATE_KEY=" + string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))}} {
		f, err := s.function(ctx, name, env...)
		if err != nil {
			return nil, err
		}
		e.stop, functions[name] = append(e.stop, f.Stop), f
	}
	e.api, e.function = functions["api"], functions["media"]
	if e.media, err = newCounter(e.function.url); err != nil {
		return nil, err
	}
	bucket, err := edge.Bucket(s.media.Endpoint(), gateway.Bucket, gateway.Region,
		credentials.NewStaticCredentialsProvider(s.secrets.S3AccessKey, s.secrets.S3SecretKey, ""))
	if err != nil {
		return nil, err
	}
	behind, check := httptest.NewServer(bucket),
		httptest.NewServer(edge.Verifier{Scheme: "http", Keys: map[string]*rsa.PublicKey{keyID: &key.PublicKey}, Now: time.Now})
	e.stop = append(e.stop, e.media.Close, behind.Close, check.Close)
	dir := filepath.Join(s.data(), "cdn")
	if err := s.account.Folder(dir); err != nil {
		return nil, err
	}
	args, err := edge.Config{Dir: dir, Port: ports[0], Verify: check.Listener.Addr().String(), Bucket: behind.Listener.Addr().String(),
		Media: e.media.Listener.Addr().String(), Secret: secret, Prefix: "/cdn"}.Write()
	if err != nil {
		return nil, err
	}
	p, err := s.supervisor.Start(ctx, supervise.Spec{Name: "nginx", Path: program, Args: args,
		Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: dir, Account: s.account,
		Quiet: true, Stop: syscall.SIGTERM, Grace: 10 * time.Second, Orphan: syscall.SIGTERM, Patience: time.Minute,
		Ready: func(ctx context.Context) error {
			a, err := e.get(ctx, url+"/")
			if err == nil && a.status != http.StatusForbidden {
				err = fmt.Errorf("the edge answers %d", a.status)
			}
			return err
		}})
	if err != nil {
		return nil, errors.Join(err, errors.New("nginx did not start"))
	}
	e.stop = append(e.stop, p.Stop)
	return e, nil
}
