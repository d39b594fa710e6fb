package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/longbox/longbox/shared/platform/plug"
)

// maxHops limits the redirects to a picture.
const maxHops = 3

// fetcher fetches pictures from public addresses.
type fetcher struct{ client *http.Client }

// outside makes a fetcher that connects to public addresses only. Each address is checked when it is dialled, after
// name resolution and for every redirect, so that DNS rebinding does not bypass the check.
func outside() *fetcher { return fetching(publicOnly) }

// publicOnly allows connections to web servers on the public internet.
func publicOnly(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return err
	case at.Port() != 80 && at.Port() != 443:
		return errors.New("the port must be 80 or 443")
	case !public(at.Addr()) || near(at.Addr()):
		return fmt.Errorf("%s is not a public address", at.Addr())
	}
	return nil
}

// near reports whether an address is in a network of this machine.
func near(a netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, of := range all {
		if p, err := netip.ParsePrefix(of.String()); err == nil && p.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}

// fetching makes a fetcher whose connections control checks.
func fetching(control func(network, address string, c syscall.RawConn) error) *fetcher {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: control}
	return &fetcher{&http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 20 * time.Second,
			MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxHops {
				return errors.New("too many redirects")
			}
			r.Header.Del("Referer")
			return web(r.URL.Scheme)
		},
	}}
}

func web(scheme string) error {
	if scheme != "https" && scheme != "http" {
		return errors.New("not an http or https address")
	}
	return nil
}

// special are networks that netip does not report as private, loopback, link-local or multicast, but that lead to no
// public server, or embed another address (https://www.iana.org/assignments/iana-ipv4-special-registry).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("::ffff:0:0:0/96"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("3fff::/20"), netip.MustParsePrefix("5f00::/16"), netip.MustParsePrefix("fec0::/10"),
}

// public reports whether an address is on the public internet.
func public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Zone() != "" {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// picture fetches a picture.
func (f *fetcher) picture(ctx context.Context, address string) (*plug.Answer, *plug.Fault) {
	failed := func(err error) (*plug.Answer, *plug.Fault) {
		return nil, plug.Failed(plug.FetchFailed, "The picture cannot be fetched: %v", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return failed(err)
	}
	if err := web(r.URL.Scheme); err != nil {
		return failed(err)
	}
	r.URL.User = nil
	r.Header.Set("Accept", "image/*")
	r.Header.Set("User-Agent", "Longbox")
	res, err := f.client.Do(r)
	if err != nil {
		return failed(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return failed(fmt.Errorf("%s answers %s", r.URL.Host, res.Status))
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, plug.MaxPicture+1))
	if err != nil {
		return failed(err)
	}
	if len(data) > plug.MaxPicture {
		return failed(fmt.Errorf("the picture has more than %d bytes", plug.MaxPicture))
	}
	return &plug.Answer{Picture: data}, nil
}
