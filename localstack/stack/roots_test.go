package stack

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longbox/longbox/localstack/account"
	"github.com/longbox/longbox/localstack/gateway"
	"github.com/longbox/longbox/localstack/library"
	"github.com/longbox/longbox/localstack/secret"
	"github.com/longbox/longbox/localstack/supervise"
)

// Root may read a folder that the gateway's user may not, on network and FUSE disks: the folder is named at the start.
func TestNamesFoldersClosedToTheGateway(t *testing.T) {
	t.Parallel()
	s3 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/closed") {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer s3.Close()
	roots := []library.Root{{Folder: "/srv/open", Bucket: "open-bucket"}, {Folder: "/srv/closed", Bucket: "closed-bucket"}}
	nobody := account.Account{UID: 65534, GID: 65534, Switch: true}
	g, err := gateway.Library(t.TempDir(), "versitygw", s3.Listener.Addr().(*net.TCPAddr).Port, roots, nobody, secret.Set{S3AccessKey: "a", S3SecretKey: "b"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := &Stack{console: supervise.NewConsole(&out), roots: roots, library: g, account: nobody}
	s.checkRoots(t.Context())
	s.console.Flush()
	const want = "Longbox: library folder /srv/closed cannot be served: user id 65534, "
	if said := out.String(); strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, want) {
		t.Errorf("said %q", said)
	}
}
