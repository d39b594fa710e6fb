package lambdakit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build builds functions as they are deployed into a folder: names are those below functions/. Those that decode images
// link libvips and so need cgo.
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
