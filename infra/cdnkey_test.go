package infra_test

import (
	"strings"
	"testing"
)

// CloudFront does not accept new content for an existing public key. So there are two keys that take turns, one at a
// time.
func TestCdnKeysTakeTurns(t *testing.T) {
	t.Parallel()
	template := read(t, "infra/cdnkey.yaml")
	names, resources := template.get("Resources").pairs()
	seen := map[string]string{}
	for i, r := range resources {
		if r.get("Type").text() != "AWS::CloudFront::PublicKey" {
			continue
		}
		for _, what := range []node{r.get("Condition"), r.get("Properties", "PublicKeyConfig", "Name"), r.get("Properties", "PublicKeyConfig", "CallerReference")} {
			all := strings.Join(what.scalars(), " ")
			if other, ok := seen[all]; ok || all == "" {
				t.Errorf("%s has the same name, reference or condition as %s: %q", names[i], other, all)
			}
			seen[all] = names[i]
		}
	}
	if len(seen) != 6 {
		t.Errorf("there are not two public keys: %v", seen)
	}
	for _, uses := range []node{template.resources("AWS::CloudFront::KeyGroup")["Group"].get("KeyGroupConfig", "Items"), template.get("Outputs", "KeyId", "Value")} {
		if got := strings.Join(uses.scalars(), " "); got != "First Key Other" {
			t.Errorf("the key in use is %q, want the one whose turn it is", got)
		}
	}
	if got := read(t, "template.yaml").resources("AWS::CloudFormation::Stack")["CdnKey"].get("Parameters", "Turn").text(); got != "CdnKeyTurn" {
		t.Errorf("the turn is %q", got)
	}
}
