package lambdahttp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A response that fits Lambda's limit is not made larger by escaping.
func TestMarkupInAnswer(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("<", 5<<20)
	h := answers(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }), nil)
	for _, event := range []string{
		`{"rawPath":"/x","requestContext":{"http":{"method":"GET"},"domainName":"x.lambda-url.eu-central-1.on.aws"}}`,
		`{"httpMethod":"GET","path":"/x","requestContext":{"elb":{}},"headers":{"host":"a"}}`,
		`{"httpMethod":"GET","path":"/x","requestContext":{"identity":{}},"headers":{"host":"a"}}`,
	} {
		out, err := h(context.Background(), json.RawMessage(event))
		if err != nil {
			t.Errorf("%s: %v", event, err)
			continue
		}
		var a struct{ Body string }
		if err := json.NewDecoder(out.(io.Reader)).Decode(&a); err != nil || a.Body != body {
			t.Errorf("%s: %.200s, %v", event, a.Body, err)
		}
	}
}
