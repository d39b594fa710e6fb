package lambdahttp

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"

	"github.com/longbox/longbox/shared/platform/requestid"
)

// kind is the kind of gateway that sent an event.
type kind int

const (
	unknown  kind = iota
	version2      // API Gateway HTTP API or function URL
	version1      // API Gateway REST API, or HTTP API with payload format 1.0
	balancer      // application load balancer
)

// kindOf recognises an event by fields that only its kind has.
func kindOf(payload []byte) kind {
	var e struct {
		HTTPMethod     string `json:"httpMethod"`
		RequestContext struct {
			ELB, HTTP *struct{}
		} `json:"requestContext"`
	}
	switch err := json.Unmarshal(payload, &e); {
	case err != nil:
		return unknown
	case e.RequestContext.HTTP != nil:
		return version2
	case e.RequestContext.ELB != nil:
		return balancer
	case e.HTTPMethod != "":
		return version1
	}
	return unknown
}

// fromVersion2 builds the request from an event in payload format 2.0.
func fromVersion2(ctx context.Context, payload []byte) (*http.Request, error) {
	var e events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	var a core.RequestAccessorV2
	if !strings.Contains(e.RequestContext.DomainName, ".lambda-url.") {
		// The HTTP API decodes the path, so a question mark in it starts no query.
		path := e.RawPath
		if stage := e.RequestContext.Stage; stage != "$default" && strings.Contains(e.RequestContext.DomainName, ".execute-api.") {
			path = withoutStage(path, stage)
		}
		e.RawPath = (&url.URL{Path: path}).EscapedPath()
	}
	r, err := a.EventToRequestWithContext(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return corrected(r, joined(e.Headers, e.Cookies), e.RequestContext.HTTP.SourceIP, true), nil
}

func withoutStage(path, stage string) string {
	if rest, ok := strings.CutPrefix(path, "/"+stage); ok && (rest == "" || rest[0] == '/') {
		return rest
	}
	return path
}

// joined builds a header from single values. The gateway has joined several values with commas. (Splitting them again
// would break dates and entity tags.)
func joined(headers map[string]string, cookies []string) http.Header {
	h := make(http.Header, len(headers)+1)
	for k, v := range headers {
		h.Set(k, v)
	}
	if len(cookies) > 0 {
		h.Set("Cookie", strings.Join(cookies, "; "))
	}
	return h
}

// fromVersion1 builds the request from a REST API's event.
func fromVersion1(ctx context.Context, payload []byte) (*http.Request, error) {
	var e events.APIGatewayProxyRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	var a core.RequestAccessor
	if _, err := url.Parse(e.Path); err != nil || strings.ContainsAny(e.Path, "?#") { // format 1.0 of an HTTP API: decoded
		e.Path = (&url.URL{Path: e.Path}).EscapedPath()
	}
	r, err := a.EventToRequestWithContext(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return corrected(r, r.Header, e.RequestContext.Identity.SourceIP, true), nil
}

// fromBalancer builds the request from a load balancer's event. The balancer does not decode the query, so it is joined
// unchanged. The client's address is the last one in X-Forwarded-For.
func fromBalancer(ctx context.Context, payload []byte) (*http.Request, bool, error) {
	var e events.ALBTargetGroupRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, false, err
	}
	var query []string
	for k, v := range e.QueryStringParameters {
		query = append(query, k+"="+v)
	}
	if e.MultiValueQueryStringParameters != nil {
		query = nil
		for k, values := range e.MultiValueQueryStringParameters {
			for _, v := range values {
				query = append(query, k+"="+v)
			}
		}
	}
	e.QueryStringParameters, e.MultiValueQueryStringParameters = nil, nil
	var a core.RequestAccessorALB
	r, err := a.EventToRequestWithContext(ctx, e)
	if err != nil {
		return nil, e.MultiValueHeaders != nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	r.URL.RawQuery = strings.Join(query, "&")
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	https := r.Header.Get("X-Forwarded-Proto") == "https"
	return corrected(r, r.Header, strings.TrimSpace(hops[len(hops)-1]), https), e.MultiValueHeaders != nil, nil
}

// corrected changes the request to what a server would have received. The peer has no port, because gateways do not
// report it.
func corrected(r *http.Request, h http.Header, peer string, https bool) *http.Request {
	r.Header = h
	if host := h.Get("Host"); host != "" {
		r.Host = host
	}
	h.Del("Host")
	r.RemoteAddr = peer
	r.URL.Scheme, r.URL.Host = "", ""
	r.RequestURI = r.URL.RequestURI()
	if https {
		r.TLS = &tls.ConnectionState{}
	}
	return r
}

// identified returns ctx with the id of the invocation as request id.
func identified(ctx context.Context) context.Context {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return requestid.In(ctx, lc.AwsRequestID)
	}
	return ctx
}

var (
	errEvent     = errors.New("the event does not come from API Gateway, a load balancer or a function URL")
	errMalformed = errors.New("the event contains no valid request")
)
