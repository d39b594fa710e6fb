package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/longbox/longbox/shared/platform/plug"
)

// sender sends requests to external servers: to public addresses, or to those that the operator has configured.
type sender struct{ outside, trusted *http.Client }

// sending makes a sender whose connections the two controls check.
func sending(outside, trusted func(network, address string, c syscall.RawConn) error) *sender {
	return &sender{outside: once(fetching(outside)), trusted: once(fetching(trusted))}
}

// once returns the client of f without redirects.
func once(f *fetcher) *http.Client {
	f.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return f.client
}

// metadata are addresses at which clouds serve a machine's credentials. No configured server is there.
var metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("100.100.100.200")}

// configured allows connections to any address that may be a server of the operator.
func configured(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	a := at.Addr().Unmap()
	if !a.IsGlobalUnicast() && !a.IsLoopback() || slices.Contains(metadata, a) {
		return fmt.Errorf("%s is not the address of a server", a)
	}
	return nil
}

// web sends a request and returns the server's response.
func (s *sender) web(ctx context.Context, in *plug.WebRequest) (*plug.Answer, *plug.Fault) {
	failed := func(err error) (*plug.Answer, *plug.Fault) {
		return nil, plug.Failed(plug.FetchFailed, "The server cannot be asked: %v", err)
	}
	r, err := request(ctx, in)
	if err != nil {
		return failed(err)
	}
	client := s.outside
	if in.Trusted {
		client = s.trusted
	}
	res, err := client.Do(r)
	if err != nil {
		return failed(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, plug.MaxWebBody+1))
	if err != nil {
		return failed(err)
	}
	if len(data) > plug.MaxWebBody {
		return failed(fmt.Errorf("%s answers with more than %d bytes", r.URL.Host, plug.MaxWebBody))
	}
	return &plug.Answer{Web: &plug.WebResponse{Status: res.StatusCode, ContentType: strings.ToValidUTF8(res.Header.Get("Content-Type"), ""), Body: data}}, nil
}

// request builds the request, within the limits.
func request(ctx context.Context, in *plug.WebRequest) (*http.Request, error) {
	switch {
	case in.Method != http.MethodGet && in.Method != http.MethodPost:
		return nil, errors.New("the method must be GET or POST")
	case len(in.Address) > plug.MaxWebAddress:
		return nil, fmt.Errorf("the address has more than %d bytes", plug.MaxWebAddress)
	case len(in.Form) > plug.MaxWebForm:
		return nil, fmt.Errorf("the form has more than %d bytes", plug.MaxWebForm)
	case in.Method == http.MethodGet && len(in.Form) > 0:
		return nil, errors.New("a GET has no form")
	}
	r, err := http.NewRequestWithContext(ctx, in.Method, in.Address, nil)
	if err != nil {
		return nil, err
	}
	if err := web(r.URL.Scheme); err != nil {
		return nil, err
	}
	r.URL.User = nil
	size := 0
	for name, value := range in.Headers {
		if !slices.Contains(plug.WebHeaders, name) {
			return nil, fmt.Errorf("the header %q is not allowed; the allowed ones are %s", name, strings.Join(plug.WebHeaders, ", "))
		}
		size += len(name) + len(value)
		r.Header.Set(name, value)
	}
	if size > plug.MaxWebHeaders {
		return nil, fmt.Errorf("the headers have more than %d bytes", plug.MaxWebHeaders)
	}
	r.Header.Set("User-Agent", "Longbox")
	if in.Method == http.MethodPost {
		r.Header.Set("Content-Type", cmp.Or(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(in.Form)), int64(len(in.Form))
	}
	return r, nil
}
