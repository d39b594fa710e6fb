package infra_test

import (
	"slices"
	"strings"
	"testing"
)

// after returns what a resource of template.yaml is made after by DependsOn.
func after(t *testing.T, name string) (out []string) {
	t.Helper()
	for _, n := range read(t, "template.yaml").get("Resources", name, "DependsOn").list() {
		out = append(out, n.text())
	}
	return out
}

// RDS Proxy signs in as roles that migrate creates, and CloudFormation waits until it has. So migrate must not wait for
// the proxy.
func TestProxyComesAfterItsRoles(t *testing.T) {
	t.Parallel()
	n := 0
	needed := strings.Join(read(t, "template.yaml").get("Resources", "Migrate").scalars(), "\n")
	for name, stack := range read(t, "template.yaml").resources("AWS::CloudFormation::Stack") {
		if len(read(t, stack.get("TemplateURL").text()).resources("AWS::RDS::DBProxyTargetGroup")) == 0 {
			continue
		}
		n++
		if !slices.Contains(after(t, name), "Schema") || strings.Contains(needed, name+".Outputs.") {
			t.Errorf("migrate waits for %s, whose proxy waits for the roles of migrate: it needs DependsOn: Schema", name)
		}
	}
	if n != 1 {
		t.Errorf("%d stacks with a proxy found, want 1", n)
	}
}
