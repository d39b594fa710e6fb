package infra_test

import (
	"slices"
	"testing"
)

// template.yaml gives each nested stack all of its parameters: one that only has its default is a setting that nobody
// can set. The named ones are constants.
func TestNestedStacksAreGivenTheirParameters(t *testing.T) {
	t.Parallel()
	constants := []string{"Cidr", "Engine", "PauseAfter", "WorkerTimeout"}
	stacks := read(t, "template.yaml").resources("AWS::CloudFormation::Stack")
	if len(stacks) < 10 {
		t.Fatalf("only %d nested stacks found", len(stacks))
	}
	for name, stack := range stacks {
		given, _ := stack.get("Parameters").pairs()
		left := map[string]bool{}
		for _, p := range given {
			left[p] = true
		}
		wanted, _ := read(t, stack.get("TemplateURL").text()).get("Parameters").pairs()
		for _, p := range wanted {
			if !left[p] && !slices.Contains(constants, p) {
				t.Errorf("template.yaml does not give %s to %s", p, name)
			}
			delete(left, p)
		}
		for p := range left {
			t.Errorf("template.yaml gives %s to %s, which does not know it", p, name)
		}
	}
}
