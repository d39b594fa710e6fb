package host

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/longbox/longbox/shared/platform/plug"
)

func TestOnlyPublicAddresses(t *testing.T) {
	t.Parallel()
	for _, a := range strings.Fields(`127.0.0.1 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 255.255.255.255 224.0.0.1 192.0.2.1 198.18.0.1
		::1 :: fe80::1 fd00:ec2::254 fc00::1 ff02::1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::1 2001:0:1::1 2001:db8::1 fec0::1 168.63.129.16 ::ffff:0:7f00:1`) {
		if public(netip.MustParseAddr(a)) {
			t.Error(a)
		}
	}
	for _, a := range strings.Fields("1.1.1.1 93.184.216.34 2606:4700::1111 ::ffff:1.1.1.1") {
		if !public(netip.MustParseAddr(a)) {
			t.Error(a)
		}
	}
}

// Connections go to web ports only, and not to networks of this machine.
func TestOnlyWebSitesElsewhere(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{"1.1.1.1:443": true, "1.1.1.1:80": true, "[2606:4700::1111]:443": true, "1.1.1.1:22": false, "1.1.1.1:6379": false, "[2606:4700::1111]:8443": false,
		"10.1.2.3:443": false, "[::ffff:127.0.0.1]:80": false, "1.1.1.1": false, "example.org:443": false} {
		if err := publicOnly("tcp", address, nil); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	own, err := net.InterfaceAddrs()
	if err != nil || len(own) == 0 {
		t.Fatal(own, err)
	}
	for _, of := range own {
		p := netip.MustParsePrefix(of.String())
		if !near(p.Addr()) || !near(p.Masked().Addr()) {
			t.Errorf("%s is not near", p)
		}
	}
	if !near(netip.MustParseAddr("::ffff:127.1.2.3")) || near(netip.MustParseAddr("1.1.1.1")) {
		t.Error("what is near is not told from what is far")
	}
}

func TestPicturesInsideAreNotFetched(t *testing.T) {
	t.Parallel()
	asked := false
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer s.Close()
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, address := range []string{s.URL, "http://localhost" + port, "http://2130706433" + port, "http://0x7f000001" + port, "http://[::ffff:127.0.0.1]" + port,
		"file:///etc/passwd", "ftp://example.org/a.jpg", "http://", "::"} {
		if _, fault := outside().picture(t.Context(), address); fault == nil || fault.Code != plug.FetchFailed {
			t.Errorf("%s: %+v", address, fault)
		}
	}
	if asked {
		t.Error("a server on this machine was asked")
	}
}

// Size, status and redirects are checked, and the address of each redirect.
func TestPicturesAreFetched(t *testing.T) {
	t.Parallel()
	var refusing string // a port
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, there := r.BasicAuth(); there || r.Referer() != "" {
			t.Errorf("%s is told who asks", r.URL)
		}
		switch r.URL.Path {
		case "/3", "/2", "/1", "/4":
			http.Redirect(w, r, map[string]string{"/4": "/3", "/3": "/2", "/2": "/1", "/1": "/picture"}[r.URL.Path], http.StatusFound)
		case "/picture":
			_, _ = w.Write([]byte("a picture"))
		case "/large":
			_, _ = w.Write(make([]byte, plug.MaxPicture+1))
		case "/once":
			http.Redirect(w, r, "/picture", http.StatusFound)
		case "/often":
			http.Redirect(w, r, "/often", http.StatusFound)
		case "/inside":
			http.Redirect(w, r, "http://127.0.0.1:"+refusing+"/picture", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect led inside") }))
	defer inside.Close()
	refusing = inside.URL[strings.LastIndex(inside.URL, ":")+1:]
	f := fetching(func(_, address string, _ syscall.RawConn) error {
		if strings.HasSuffix(address, ":"+refusing) {
			return errors.New("not a public address")
		}
		return nil
	})
	for path, want := range map[string]string{"/picture": "", "/once": "", "/3": "", "/4": "too many redirects", "/large": "more than", "/often": "too many redirects", "/inside": "not a public address",
		"/file": "not an http or https address", "/none": "404"} {
		a, fault := f.picture(t.Context(), strings.Replace(s.URL, "://", "://a:b@", 1)+path)
		if (fault == nil) != (want == "") || fault != nil && !strings.Contains(fault.Message, want) || fault == nil && string(a.Picture) != "a picture" {
			t.Errorf("%s: %+v, %+v", path, a, fault)
		}
	}
}
