package infra_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Of the functions that can be kept busy, only the api has no reservation: the others cannot take what it needs. With
// plugins, each size fits into the account that docs/cloud.md asks for, and leaves 100 executions, as Lambda demands.
func TestOnlyTheApiTakesTheRest(t *testing.T) {
	t.Parallel()
	template := read(t, "template.yaml")
	var names []string
	for _, function := range []string{"Media", "Render", "Worker", "Plugin"} {
		name := template.get("Resources", function, "Properties", "ReservedConcurrentExecutions").text()
		if name != function+"Reserved" {
			t.Errorf("%s reserves %q, want %sReserved", function, name, function)
		}
		names = append(names, name)
	}
	for size, most := range map[string]int{"small": 250, "large": 1000} {
		raw, err := os.ReadFile("../infra/parameters/" + size)
		if err != nil {
			t.Fatal(err)
		}
		sum := 100
		for _, name := range names {
			value := template.get("Parameters", name, "Default").text()
			for line := range strings.Lines(string(raw)) {
				if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
					value = v
				}
			}
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Errorf("%s of the size %s: %v", name, size, err)
			}
			sum += n
		}
		if sum > most {
			t.Errorf("the size %s needs %d executions, and an account may have only %d", size, sum, most)
		}
	}
}
