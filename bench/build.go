package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// packages are the packages of the programs. Those with libvips need cgo.
var packages = map[string]string{
	"api": "./functions/api", "media": "./functions/media", "worker": "./functions/worker", "scheduler": "./functions/scheduler",
	"plugin": "./functions/plugin", "migrate": "./functions/migrate", "sse-relay": "./sse-relay", "localstack": "./localstack", "empty": "./bench/empty",
	"through": "./bench/through",
}

// build builds a program as it is deployed, once.
func (s *system) build(ctx context.Context, name string) error {
	binary := filepath.Join(s.programs, name)
	if _, err := os.Stat(binary); err == nil {
		return nil
	}
	cgo := "CGO_ENABLED=0"
	if name == "media" || name == "worker" {
		cgo = "CGO_ENABLED=1"
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-tags=lambda.norpc", "-o", binary, packages[name])
	cmd.Dir, cmd.Env = s.root, append(os.Environ(), cgo)
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
