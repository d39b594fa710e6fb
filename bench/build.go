package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is one binary to build; those with libvips need cgo.
type program struct {
	name, path string
	cgo        bool
}

var programs = []program{
	{name: "api", path: "./functions/api"},
	{name: "media", path: "./functions/media", cgo: true},
	{name: "worker", path: "./functions/worker", cgo: true},
	{name: "scheduler", path: "./functions/scheduler"},
	{name: "migrate", path: "./functions/migrate"},
	{name: "sse-relay", path: "./sse-relay"},
	{name: "localstack", path: "./localstack"},
	{name: "empty", path: "./bench/empty"},
}

// build makes the program as it is deployed, once.
func (p program) build(ctx context.Context, root, dir string) error {
	binary := filepath.Join(dir, p.name)
	if _, err := os.Stat(binary); err == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary)
	cgo := "CGO_ENABLED=1"
	if !p.cgo {
		cgo = "CGO_ENABLED=0"
		cmd.Args = append(cmd.Args, "-tags=lambda.norpc")
	}
	cmd.Args = append(cmd.Args, p.path)
	cmd.Dir, cmd.Env = root, append(os.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", p.name, err, out)
	}
	return nil
}

// repository is the folder of go.mod.
func repository(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if filepath.Base(file) != "go.mod" {
		return "", fmt.Errorf("run it inside the repository: go run ./bench")
	}
	return filepath.Dir(file), nil
}
