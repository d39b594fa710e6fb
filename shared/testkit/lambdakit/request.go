package lambdakit

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// Gateway is a service that turns requests into events.
type Gateway int

// The gateways.
const (
	HTTPAPI     Gateway = iota // API Gateway HTTP API, payload format 2.0
	RESTAPI                    // API Gateway REST API, format 1.0
	ALB                        // application load balancer with multi-value headers
	ALBSingle                  // the same without multi-value headers
	FunctionURL                // Lambda function URL, format 2.0
)

// Stage is the stage of API Gateway. "" is $default, whose name is not part of the path.
type Stage string

// Event returns a gateway's event for a request. The client's address is r.RemoteAddr.
func Event(g Gateway, stage Stage, r *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	body, encoded := string(raw), false
	if !utf8.Valid(raw) || strings.Contains(r.Header.Get("Content-Encoding"), "gzip") {
		body, encoded = base64.StdEncoding.EncodeToString(raw), true
	}
	peer, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		peer = r.RemoteAddr
	}
	h := r.Header.Clone()
	h.Set("Host", r.Host)
	h.Set("X-Forwarded-For", strings.Join(append(h.Values("X-Forwarded-For"), peer), ", "))
	h.Set("X-Forwarded-Proto", "https")
	h.Set("X-Forwarded-Port", "443")
	h.Set("X-Amzn-Trace-Id", "Root=1-00000000-000000000000000000000000")
	switch g {
	case HTTPAPI:
		path := r.URL.Path // only this gateway decodes the path
		if stage != "" {
			path = "/" + string(stage) + path
		}
		return json.Marshal(version2(r, h, path, string(stage), "x1y2z3.execute-api.eu-central-1.amazonaws.com", peer, body, encoded))
	case FunctionURL:
		return json.Marshal(version2(r, h, r.URL.EscapedPath(), "", "abcdef.lambda-url.eu-central-1.on.aws", peer, body, encoded))
	case RESTAPI:
		q := r.URL.Query()
		return json.Marshal(events.APIGatewayProxyRequest{
			Resource: "/{proxy+}", Path: r.URL.EscapedPath(), HTTPMethod: r.Method, Headers: last(h), MultiValueHeaders: h,
			QueryStringParameters: last(q), MultiValueQueryStringParameters: q, PathParameters: map[string]string{"proxy": strings.TrimPrefix(r.URL.Path, "/")},
			Body: body, IsBase64Encoded: encoded,
			RequestContext: events.APIGatewayProxyRequestContext{Stage: "prod", Path: "/prod" + r.URL.EscapedPath(), ResourceID: "abc123", HTTPMethod: r.Method,
				RequestID: "rest-request", DomainName: "x1y2z3.execute-api.eu-central-1.amazonaws.com", APIID: "x1y2z3", Protocol: "HTTP/1.1",
				Identity: events.APIGatewayRequestIdentity{SourceIP: peer, UserAgent: r.UserAgent()}},
		})
	}
	q := rawQuery(r.URL.RawQuery) // the balancer does not decode
	e := events.ALBTargetGroupRequest{HTTPMethod: r.Method, Path: r.URL.EscapedPath(), Body: body, IsBase64Encoded: encoded,
		RequestContext: events.ALBTargetGroupRequestContext{ELB: events.ELBContext{
			TargetGroupArn: "arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/longbox/0123456789abcdef"}}}
	lower := map[string][]string{}
	for k, v := range h {
		lower[strings.ToLower(k)] = v
	}
	if g == ALB {
		e.MultiValueHeaders, e.MultiValueQueryStringParameters = lower, q
	} else {
		e.Headers, e.QueryStringParameters = last(lower), last(q)
	}
	return json.Marshal(e)
}

// version2 is payload format 2.0: one string per header, separate cookies, the query unchanged.
func version2(r *http.Request, h http.Header, path, stage, domain, peer, body string, encoded bool) events.APIGatewayV2HTTPRequest {
	var cookies []string
	for _, line := range h.Values("Cookie") {
		for c := range strings.SplitSeq(line, ";") {
			cookies = append(cookies, strings.TrimSpace(c))
		}
	}
	h.Del("Cookie")
	headers := map[string]string{}
	for k, v := range h {
		headers[strings.ToLower(k)] = strings.Join(v, ",")
	}
	query := map[string]string{}
	for k, v := range r.URL.Query() {
		query[k] = strings.Join(v, ",")
	}
	if stage == "" {
		stage = "$default"
	}
	return events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "$default", RawPath: path, RawQueryString: r.URL.RawQuery, Cookies: cookies, Headers: headers,
		QueryStringParameters: query, Body: body, IsBase64Encoded: encoded,
		RequestContext: events.APIGatewayV2HTTPRequestContext{RouteKey: "$default", AccountID: "123456789012", Stage: stage, RequestID: "gateway-request",
			APIID: "x1y2z3", DomainName: domain, DomainPrefix: "x1y2z3", Time: "12/Mar/2020:19:03:58 +0000", TimeEpoch: 1583348638390,
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: r.Method, Path: path,
				Protocol: "HTTP/1.1", SourceIP: peer, UserAgent: r.UserAgent()}},
	}
}

// last keeps the last value of each, like gateways without multi-value headers.
func last(m map[string][]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = v[len(v)-1]
	}
	return out
}

func rawQuery(s string) url.Values {
	q := url.Values{}
	for pair := range strings.SplitSeq(s, "&") {
		if k, v, _ := strings.Cut(pair, "="); pair != "" {
			q.Add(k, v)
		}
	}
	return q
}
