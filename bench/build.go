package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/longbox/longbox/localstack/build"
)

// program returns a program that is deployed, or one that only the benchmarks need.
func source(name string) build.Program {
	for _, p := range build.Programs {
		if p.Name == name {
			return p
		}
	}
	if name == "localstack" {
		return build.Program{Name: name, Package: "./localstack"}
	}
	return build.Program{Name: name, Package: "./bench/" + name} // empty and through
}

// build builds a program as it is deployed, once.
func (s *system) build(ctx context.Context, name string) error {
	binary := filepath.Join(s.programs, name)
	if _, err := os.Stat(binary); err == nil {
		return nil
	}
	return s.compile(ctx, name, binary)
}

// compile builds a program. flags override those of a deployment.
func (s *system) compile(ctx context.Context, name, binary string, flags ...string) error {
	cmd := source(name).Command(ctx, binary, flags...)
	cmd.Dir = s.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", name, err, out)
	}
	return nil
}

// repository returns the folder of go.mod.
func repository(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if filepath.Base(file) != "go.mod" {
		return "", fmt.Errorf("run the benchmarks inside the repository: go run ./bench")
	}
	return filepath.Dir(file), nil
}
