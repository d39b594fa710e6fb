package infra_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// CloudFormation reads a secret again only if another part of the resource changes, and ECS when it starts a task. So
// every resource that uses a secret has SecretsOf, which the template passes on.
func TestSecretsAreReadAgain(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates: %v", err)
	}
	n := 0
	for _, file := range append(files, "../template.yaml") {
		template := read(t, filepath.Join("infra", file))
		names, resources := template.get("Resources").pairs()
		for i, r := range resources {
			all := strings.Join(r.scalars(), "\n")
			if !strings.Contains(all, "{{resolve:secretsmanager:") && !strings.Contains(all, "ValueFrom\n") {
				continue
			}
			n++
			if !strings.Contains(all, "SecretsOf") {
				t.Errorf("%s of %s keeps the old secret when SecretsOf is another", names[i], file)
			}
		}
	}
	if n < 12 {
		t.Errorf("%d resources with secrets found, want at least 12", n)
	}
	stacks := read(t, "template.yaml").resources("AWS::CloudFormation::Stack")
	for name, stack := range stacks {
		wants := read(t, stack.get("TemplateURL").text()).get("Parameters", "SecretsOf").Node != nil
		if got := stack.get("Parameters", "SecretsOf").text() == "SecretsOf"; got != wants {
			t.Errorf("the stack %s is given SecretsOf: %t, want %t", name, got, wants)
		}
	}
}
