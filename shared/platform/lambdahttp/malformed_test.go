package lambdahttp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A client's request must never fail an invocation, which means 502 and an alarm. An event that no client can cause
// does.
func TestMalformedRequest(t *testing.T) {
	t.Parallel()
	h := answers(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was handled") }), nil)
	for event, header := range map[string]string{
		`{"rawPath":"/%zz","requestContext":{"http":{"method":"GET"},"domainName":"x.lambda-url.eu-central-1.on.aws"}}`:              "headers",
		`{"httpMethod":"GET","path":"/%zz","requestContext":{"elb":{}},"headers":{"host":"a"}}`:                                      "headers",
		`{"httpMethod":"GET","path":"/x","requestContext":{"elb":{}},"headers":{"host":"a:b"}}`:                                      "headers",
		`{"httpMethod":"GET","path":"/%zz","requestContext":{"elb":{}},"multiValueHeaders":{"host":["a"]}}`:                          "multiValueHeaders",
		`{"httpMethod":"GET","path":"/x","requestContext":{"identity":{}},"headers":{"host":"a"},"isBase64Encoded":true,"body":"!"}`: "multiValueHeaders",
	} {
		out, err := h(context.Background(), json.RawMessage(event))
		if err != nil {
			t.Errorf("%s: %v", event, err)
			continue
		}
		data, err := io.ReadAll(out.(io.Reader))
		if err != nil {
			t.Fatal(err)
		}
		var a map[string]any
		if err := json.Unmarshal(data, &a); err != nil {
			t.Fatal(err)
		}
		if body, _ := a["body"].(string); a["statusCode"] != 400.0 || !strings.Contains(body, `"error":"BadRequest"`) || a[header] == nil {
			t.Errorf("%s: %s", event, data)
		}
	}
	for _, event := range []string{`{"httpMethod":"GET","path":7,"requestContext":{"elb":{}}}`, `{}`} {
		if out, err := h(context.Background(), json.RawMessage(event)); err == nil {
			t.Errorf("%s: %v", event, out)
		}
	}
}
