package infra_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	edge "github.com/longbox/longbox/localstack/cdn"
	"github.com/longbox/longbox/shared/platform/cors"
)

// Every distribution has the firewall, and only origins that others cannot reach.
func TestDistributionsAreGuarded(t *testing.T) {
	t.Parallel()
	n := 0
	for _, file := range []string{"infra/edge.yaml", "infra/cdn.yaml"} {
		for name, d := range read(t, file).resources("AWS::CloudFront::Distribution") {
			n++
			config := d.get("DistributionConfig")
			if got := strings.Join(config.get("WebACLId").scalars(), " "); !strings.Contains(got, "WebAclArn") {
				t.Errorf("%s of %s has no firewall: WebACLId is %q", name, file, got)
			}
			var fresh []string // CloudFront keeps errors for 10 s, also without being told to
			for _, e := range config.get("CustomErrorResponses").list() {
				if e.get("ErrorCachingMinTTL").text() == "0" && e.get("ResponsePagePath").Node == nil {
					fresh = append(fresh, e.get("ErrorCode").text())
				}
			}
			if got := strings.Join(fresh, " "); got != "400 403 404 405 414 416 500 501 502 503 504" {
				t.Errorf("%s of %s keeps other errors than %s", name, file, got)
			}
			for _, o := range config.get("Origins").list() {
				o = o.chosen(true)
				if o.get("OriginAccessControlId").Node == nil && o.get("VpcOriginConfig").Node == nil && o.get("OriginCustomHeaders").Node == nil {
					t.Errorf("%s of %s: anybody may ask the origin %s", name, file, o.get("Id").text())
				}
			}
		}
	}
	if n != 2 {
		t.Errorf("%d distributions found, want 2", n)
	}
	for rule := range strings.SplitSeq(strings.Join(read(t, "infra/waf.yaml").resources("AWS::WAFv2::WebACL")["WebAcl"].get("Rules").scalars(), " "), "Name ") {
		if strings.Contains(rule, "UriPath") && !(strings.Contains(rule, "URL_DECODE") && strings.Contains(rule, "NORMALIZE_PATH")) {
			t.Errorf("a path that is written differently leads around the rule %.20s", rule)
		}
	}
}

// Readers of catalogs that send no credential are asked for one at the CDN. Web clients on other hosts are not: their
// preflight requests never carry a credential, and only the api's responses have the headers of CORS.
func TestOnlyReadersOfCatalogsAreAskedAtTheCDN(t *testing.T) {
	t.Parallel()
	edge := read(t, "infra/edge.yaml")
	for _, name := range []string{"ForApi", "ForMedia"} {
		code := edge.get("Resources", name, "Properties", "FunctionCode").text()
		condition := regexp.MustCompile(`(?s)if \(([^{]+)\) \{\s+return \{\s+statusCode: 401`).FindStringSubmatch(code)
		if condition == nil {
			t.Fatalf("%s asks nobody for a credential", name)
		}
		for _, part := range []string{"r.uri.startsWith('/opds')", "!r.headers.authorization", "!r.headers['x-api-key']", "!r.headers.origin"} {
			if !slices.Contains(strings.Split(condition[1], " && "), part) {
				t.Errorf("%s answers 401 without asking whether %s", name, part)
			}
		}
	}
}

// Every behaviour of the distribution of pictures lets web clients of any origin read responses and answers their
// preflight requests, which name the headers that the client has sent to the api.
func TestPicturesMayBeReadByWebClients(t *testing.T) {
	t.Parallel()
	file := read(t, "infra/cdn.yaml")
	policy := file.get("Resources", "Headers", "Properties", "ResponseHeadersPolicyConfig", "CorsConfig")
	for name, want := range map[string]string{
		"AccessControlAllowOrigins": "*", "AccessControlAllowMethods": "GET, HEAD",
		"AccessControlAllowHeaders": cors.RequestHeaders, "AccessControlExposeHeaders": edge.Expose,
	} {
		if got := strings.Join(policy.get(name, "Items").scalars(), ", "); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if policy.get("OriginOverride").text() != "true" || policy.get("AccessControlAllowCredentials").text() != "false" {
		t.Error("the policy must override the origin's headers, and allow no credentials")
	}
	code := file.get("Resources", "ForPreflight", "Properties", "FunctionCode").text()
	for name, value := range map[string]string{"origin": "*", "methods": "GET, HEAD", "headers": cors.RequestHeaders} {
		if want := "'access-control-allow-" + name + "': { value: '" + value + "' }"; !strings.Contains(code, want) {
			t.Errorf("ForPreflight lacks %s", want)
		}
	}
	config := file.get("Resources", "Distribution", "Properties", "DistributionConfig")
	behaviours := append(config.get("CacheBehaviors").list(), config.get("DefaultCacheBehavior"))
	if len(behaviours) != 2 {
		t.Errorf("%d behaviours found, want 2", len(behaviours))
	}
	for _, b := range behaviours {
		function := strings.Join(b.get("FunctionAssociations").scalars(), " ")
		if b.get("ResponseHeadersPolicyId").text() != "Headers" || !slices.Contains(b.get("AllowedMethods").scalars(), "OPTIONS") ||
			function != "EventType viewer-request FunctionARN ForPreflight.FunctionARN" {
			t.Errorf("the behaviour %q of infra/cdn.yaml is not for web clients on other hosts", b.get("PathPattern").text())
		}
	}
}
