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

// An upgrade migrates first, then changes the functions, then the relay, whose new tasks ask the new functions.
// docs/cloud.md promises it.
func TestUpgradeKeepsItsOrder(t *testing.T) {
	t.Parallel()
	relay, n := after(t, "Relay"), 0
	for name := range read(t, "template.yaml").resources("AWS::Serverless::Function") {
		if name == "Migrate" {
			continue
		}
		n++
		if !slices.Contains(after(t, name), "Schema") {
			t.Errorf("%s changes before the schema is up to date: it needs DependsOn: Schema", name)
		}
		if name != "Operator" && !slices.Contains(relay, name) { // Nobody comes to it by the relay.
			t.Errorf("the relay changes before %s: name it in DependsOn of Relay", name)
		}
	}
	if n < 6 {
		t.Errorf("only %d functions found", n)
	}
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

// An update sets a service to its DesiredCount again, whatever the load has made of it.
func TestScaledServicesHaveNoCount(t *testing.T) {
	t.Parallel()
	relay := read(t, "infra/relay.yaml")
	targets, services := relay.resources("AWS::ApplicationAutoScaling::ScalableTarget"), relay.resources("AWS::ECS::Service")
	if len(targets) != 1 || len(services) != 1 {
		t.Fatalf("%d services, %d scaled ones", len(services), len(targets))
	}
	for name, service := range services {
		if service.get("DesiredCount").Node != nil {
			t.Errorf("every upgrade sets %s back to its DesiredCount", name)
		}
	}
}
