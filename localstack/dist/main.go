// Command dist builds every function for deployment: stripped binaries in dist/<name>/bootstrap and, for Lambda, zips
// of them in dist/<name>.zip. Functions without libvips are static. Those with libvips (media, worker) run in the
// container images under infra, or with libvips in a layer.
package main

import (
	"archive/zip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// program is one binary: its package, and whether it links libvips.
type program struct {
	name, path string
	vips       bool
	zipped     bool // The relay is no Lambda function; plugin needs an image with the programs that it starts.
	arm        bool // Cross-compile for ARM.
}

var programs = []program{
	{name: "api", path: "./functions/api", zipped: true},
	{name: "scheduler", path: "./functions/scheduler", zipped: true},
	{name: "migrate", path: "./functions/migrate", zipped: true},
	{name: "operator", path: "./functions/operator", zipped: true},
	{name: "media", path: "./functions/media", vips: true, zipped: true},
	{name: "worker", path: "./functions/worker", vips: true, zipped: true},
	{name: "plugin", path: "./functions/plugin"},
	{name: "sse-relay", path: "./sse-relay"},
}

func main() {
	lambda := flag.Bool("lambda", false, "build only what Lambda takes as a zip: for arm64, without the programs that need libvips")
	flag.Parse()
	for _, p := range programs {
		if *lambda && (p.vips || !p.zipped) {
			continue
		}
		p.arm = *lambda
		if err := p.build("dist"); err != nil {
			fmt.Fprintln(os.Stderr, "Longbox:", err)
			os.Exit(1)
		}
	}
}

func (p program) build(dir string) error {
	binary := filepath.Join(dir, p.name, "bootstrap")
	cgo := "0"
	if p.vips {
		cgo = "1"
	}
	args := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-tags=lambda.norpc", "-o", binary}, unstamped()...)
	cmd := exec.Command("go", append(args, p.path)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if p.arm {
		cmd.Env = append(cmd.Env, "GOOS=linux", "GOARCH=arm64")
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w", p.name, err)
	}
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	fmt.Printf("%-28s %6.1f MB\n", binary, float64(info.Size())/1e6)
	if !p.zipped {
		return nil
	}
	size, err := pack(binary, filepath.Join(dir, p.name+".zip"))
	if err != nil {
		return fmt.Errorf("zip %s: %w", p.name, err)
	}
	fmt.Printf("%-28s %6.1f MB\n", filepath.Join(dir, p.name+".zip"), float64(size)/1e6)
	return nil
}

// unstamped returns the flag to build without the commit if git fails, for example for root in another user's clone:
// otherwise the build fails.
func unstamped() []string {
	if exec.Command("git", "rev-parse", "--git-dir").Run() != nil {
		return []string{"-buildvcs=false"}
	}
	return nil
}

// pack writes a zip with one executable and returns its size in bytes. The same binary gives the same bytes.
func pack(binary, path string) (size int64, err error) {
	in, err := os.Open(binary)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	z := zip.NewWriter(out)
	header := &zip.FileHeader{Name: filepath.Base(binary), Method: zip.Deflate, Modified: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	header.SetMode(0o755)
	entry, err := z.CreateHeader(header)
	if err != nil {
		return 0, err
	}
	if _, err := io.Copy(entry, in); err != nil {
		return 0, err
	}
	if err := z.Close(); err != nil {
		return 0, err
	}
	info, err := out.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
