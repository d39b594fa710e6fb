package lambdakit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build builds functions, by their names below functions/, into a folder, as they are deployed, but without -trimpath:
// so they share what go vet and go test have compiled. Functions that decode images link libvips, which needs cgo.
func Build(folder string, names ...string) error {
	root, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("go env GOMOD: %w", err)
	}
	packages := map[string][]string{}
	for _, name := range names {
		cgo := "CGO_ENABLED=0"
		if name == "media" || name == "worker" {
			cgo = "CGO_ENABLED=1"
		}
		packages[cgo] = append(packages[cgo], "./functions/"+name)
	}
	for cgo, those := range packages {
		cmd := exec.Command("go", append([]string{"build", "-ldflags=-s -w", "-tags=lambda.norpc", "-o", folder + "/"}, those...)...)
		cmd.Dir, cmd.Env = filepath.Dir(strings.TrimSpace(string(root))), append(os.Environ(), cgo)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", strings.Join(those, " "), err, out)
		}
	}
	return nil
}
