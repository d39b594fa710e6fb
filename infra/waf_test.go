package infra_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The firewall's low limit is for sign-in, of which a reader needs little. Who is signed in, and refreshes a token, is
// not counted, and nothing that takes a password is left out.
func TestFirewallCountsSignIn(t *testing.T) {
	t.Parallel()
	statement := read(t, "infra/waf.yaml").resources("AWS::WAFv2::WebACL")["WebAcl"].get("Rules").list()[0].get("Statement", "RateBasedStatement", "ScopeDownStatement")
	counts, err := regexp.Compile(statement.get("RegexMatchStatement", "RegexString").text())
	if err != nil || counts.String() == "" {
		t.Fatalf("the rule sign-in counts %q: %v", counts, err)
	}
	raw, err := os.ReadFile("../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var description struct {
		Paths map[string]map[string]struct{ Security []any }
	}
	if err := json.Unmarshal(raw, &description); err != nil {
		t.Fatal(err)
	}
	n := 0
	for path, methods := range description.Paths {
		for method, operation := range methods {
			signIn := strings.HasPrefix(path, "/api/v1/auth/") && len(operation.Security) == 0 &&
				(method == "post" && !strings.HasSuffix(path, "/refresh") || strings.HasSuffix(path, "/callback"))
			if signIn {
				n++
			}
			if got := counts.MatchString(strings.ReplaceAll(path, "{provider}", "acme")); got != signIn {
				t.Errorf("%s %s is counted as sign-in: %v, want %v: correct RegexString in infra/waf.yaml", method, path, got, signIn)
			}
		}
	}
	if n < 6 {
		t.Errorf("only %d operations of sign-in found", n)
	}
}
