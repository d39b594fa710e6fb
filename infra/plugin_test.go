package infra_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// The plugin function is outside the network, has no secret, may only write its log, and isolates tenants.
func TestPluginsReachNothing(t *testing.T) {
	t.Parallel()
	template := read(t, "template.yaml")
	function := template.get("Resources", "Plugin", "Properties")
	if kind := template.get("Resources", "Plugin", "Type").text(); kind != alone || function.get("VpcConfig").Node != nil {
		t.Errorf("it is a %s with the VpcConfig %v: it must be a %s without", kind, function.get("VpcConfig").scalars(), alone)
	}
	if mode := function.get("TenancyConfig", "TenantIsolationMode").text(); mode != "PER_TENANT" {
		t.Errorf("tenants share what plugins leave behind: the mode is %q", mode)
	}
	if all := strings.Join(function.scalars(), "\n"); strings.Contains(all, "{{resolve:") || strings.Contains(all, "Secret") {
		t.Errorf("it is given a secret: %s", all)
	}
	role := template.get("Resources", "PluginRole", "Properties")
	if function.get("Role").text() != "PluginRole.Arn" || role.get("ManagedPolicyArns").Node != nil || len(role.get("Policies").list()) != 1 {
		t.Error("its role must be PluginRole, with one policy of its own")
	}
	statements := role.get("Policies").list()[0].get("PolicyDocument", "Statement").list()
	if len(statements) != 1 || statements[0].get("Resource").text() != "PluginLog.Arn" ||
		!slices.Equal(statements[0].get("Action").scalars(), []string{"logs:CreateLogStream", "logs:PutLogEvents"}) {
		t.Errorf("it may do more than write its log: %v", role.get("Policies").scalars())
	}
}

// Without plugins in the parameters, nothing of them is deployed, and no program is configured for them.
func TestPluginsCanBeLeftOut(t *testing.T) {
	t.Parallel()
	template := read(t, "template.yaml")
	for file, names := range map[string][]string{
		"template.yaml": {"Plugin", "PluginRole", "PluginLog"}, "infra/network.yaml": {"LambdaEndpoint"}, "infra/secret.yaml": {"Credentials"},
	} {
		for _, name := range names {
			if got := read(t, file).get("Resources", name, "Condition").text(); got != "WithPlugins" {
				t.Errorf("%s of %s has the condition %q", name, file, got)
			}
		}
	}
	told := map[string][]string{}
	functions := template.resources("AWS::Serverless::Function")
	for name, function := range functions {
		keys, values := function.get("Environment", "Variables").pairs()
		for i, key := range keys {
			if !strings.HasPrefix(key, "PLUGIN_") && key != "CREDENTIALS_KEY" {
				continue
			}
			told[name] = append(told[name], key)
			if values[i].Tag != "!If" || values[i].scalars()[0] != "WithPlugins" {
				t.Errorf("%s is given %s without plugins", name, key)
			}
		}
	}
	if got := slices.Sorted(maps.Keys(told)); !slices.Equal(got, []string{"Api", "Operator", "Worker"}) || !slices.Equal(told["Operator"], []string{"CREDENTIALS_KEY"}) {
		t.Errorf("%v are told of plugins, want Api and Worker, and Operator of the key alone", told)
	}
}

// The endpoint from the network to Lambda leads only to plugins, and only for this account.
func TestEndpointOfPlugins(t *testing.T) {
	t.Parallel()
	statements := read(t, "infra/network.yaml").get("Resources", "LambdaEndpoint", "Properties", "PolicyDocument", "Statement").list()
	if len(statements) != 1 {
		t.Fatalf("%d statements, want 1", len(statements))
	}
	s := statements[0]
	if s.get("Action").text() != invoke || s.get("Resource").text() != "PluginFunction" ||
		s.get("Condition", "StringEquals", "aws:PrincipalAccount").text() != "AWS::AccountId" {
		t.Errorf("the endpoint lets through %v", s.scalars())
	}
}
