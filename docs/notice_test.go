package docs_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Every module linked into a program is in NOTICE with its version.
func TestNoticeNamesEveryLinkedModule(t *testing.T) {
	t.Parallel()
	notice, err := os.ReadFile("../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}",
		"./functions/api", "./functions/media", "./functions/worker", "./functions/scheduler", "./functions/migrate", "./functions/operator",
		"./functions/plugin", "./sse-relay", "./localstack")
	cmd.Dir = ".."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, module := range strings.Split(string(out), "\n") {
		if module == "" || seen[module] {
			continue
		}
		seen[module] = true
		if !strings.Contains(string(notice), "\n"+module+"\n") {
			t.Errorf("NOTICE lacks %s", module)
		}
	}
	if len(seen) < 20 {
		t.Fatalf("only %d linked modules found", len(seen))
	}
}
