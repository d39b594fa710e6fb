package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const access, secret = "longboxtest", "longboxtestsecret"

// place is where a service runs.
type place struct {
	dir     string // the service's own folder
	address string // host:port on which the service listens
	webhook string // host:port on which the suites receive its notifications
}

// service is a store, a queue or both, with its suites.
type service struct {
	name   string
	suites []*suite
	start  func(p place) *exec.Cmd // nil: the suites start it
	health string                  // path
	env    func(p place) []string  // environment of the suites
}

var services = []service{
	{name: "versitygw", suites: []*suite{stores, notices, books}},
	{name: "MinIO", suites: []*suite{stores, notices, books}, start: minio, health: "/minio/health/live", env: func(p place) []string {
		return []string{"TEST_S3_ENDPOINT=http://" + p.address, "TEST_S3_ACCESS_KEY=" + access, "TEST_S3_SECRET_KEY=" + secret,
			"TEST_S3_EVENTS=webhook", "TEST_S3_WEBHOOK=" + p.webhook}
	}},
	{name: "LocalStack", suites: []*suite{stores, queues, notices, books, setup}, start: localstack,
		health: "/_localstack/health", env: func(p place) []string {
			return []string{"TEST_S3_ENDPOINT=http://" + p.address, "TEST_S3_ACCESS_KEY=test", "TEST_S3_SECRET_KEY=test",
				"TEST_S3_EVENTS=sqs", "TEST_SQS_ENDPOINT=http://" + p.address}
		}},
	{name: "SQS of testkit", suites: []*suite{queues}},
}

func minio(p place) *exec.Cmd {
	cmd := exec.Command(".tools/bin/minio", "server", "--quiet", "--address", p.address, "--console-address", "127.0.0.1:0", filepath.Join(p.dir, "data"))
	cmd.Env = append(os.Environ(), "MINIO_ROOT_USER="+access, "MINIO_ROOT_PASSWORD="+secret, "MINIO_UPDATE=off", "HOME="+p.dir,
		"MINIO_NOTIFY_WEBHOOK_ENABLE_longbox=on", "MINIO_NOTIFY_WEBHOOK_ENDPOINT_longbox=http://"+p.webhook)
	return cmd
}

// localstack runs the package like its container, but in its own folder and on loopback only: its other server always
// listens on all interfaces. Unlike by default, it checks signatures.
func localstack(p place) *exec.Cmd {
	cmd := exec.Command(".tools/localstack/bin/python", "-m", "localstack.runtime.main")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "FILESYSTEM_ROOT=" + p.dir, "OVERRIDE_IN_DOCKER=0",
		"GATEWAY_SERVER=hypercorn", "GATEWAY_LISTEN=" + p.address, "LOCALSTACK_HOST=" + p.address, "DNS_ADDRESS=0",
		"SERVICES=s3,sqs", "STRICT_SERVICE_LOADING=1", "EAGER_SERVICE_LOADING=1", "S3_SKIP_SIGNATURE_VALIDATION=0",
		"DISABLE_EVENTS=1", "SKIP_SSL_CERT_DOWNLOAD=1"} // no requests to the internet
	return cmd
}

// serve starts the service and waits until it is ready.
func (s service) serve(ctx context.Context) (env []string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "longbox-conformance-")
	if err != nil {
		return nil, nil, err
	}
	p := place{dir: dir}
	if p.address, err = free(); err != nil {
		return nil, nil, err
	}
	if p.webhook, err = free(); err != nil {
		return nil, nil, err
	}
	cmd := s.start(p)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("%w: run localstack/prepare.sh conformance", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop = func() { _ = cmd.Process.Kill(); <-ended; _ = os.RemoveAll(dir) } // nothing outlives the run
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end) && ctx.Err() == nil; {
		if answers("http://" + p.address + s.health) {
			return s.env(p), stop, nil
		}
		select {
		case err := <-ended:
			ended <- err
			stop()
			return nil, nil, fmt.Errorf("ended: %w: %s", err, tail(log.String()))
		case <-time.After(100 * time.Millisecond):
		}
	}
	stop()
	return nil, nil, errors.Join(fmt.Errorf("does not answer: %s", tail(log.String())), ctx.Err())
}

func answers(url string) bool {
	res, err := http.Get(url)
	if err != nil {
		return false
	}
	_ = res.Body.Close() // only its status matters
	return res.StatusCode == http.StatusOK
}

func tail(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// free returns a free loopback address.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
