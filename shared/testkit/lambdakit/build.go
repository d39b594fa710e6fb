package lambdakit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build builds functions, by their names below functions/, into a folder, as they are deployed. Functions that decode
// images link libvips, which needs cgo.
func Build(folder string, names ...string) error {
	root, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("go env GOMOD: %w", err)
	}
	for _, name := range names {
		cgo := "CGO_ENABLED=0"
		if name == "media" || name == "worker" {
			cgo = "CGO_ENABLED=1"
		}
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-tags=lambda.norpc", "-o", filepath.Join(folder, name), "./functions/"+name)
		cmd.Dir, cmd.Env = filepath.Dir(strings.TrimSpace(string(root))), append(os.Environ(), cgo)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", name, err, out)
		}
	}
	return nil
}
