// Command dist builds every function for deployment: stripped binaries in dist/<name>/bootstrap and, for Lambda, zips
// of them in dist/<name>.zip. Functions without libvips are static. Those with libvips (media, worker) run in the
// container images under infra, or with libvips in a layer.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/longbox/longbox/localstack/build"
)

func main() {
	lambda := flag.Bool("lambda", false, "build only what Lambda takes as a zip: for arm64, without the programs that need libvips")
	flag.Parse()
	for _, p := range build.Programs {
		if *lambda && (p.Vips || !p.Zipped) {
			continue
		}
		if err := write(p, "dist", *lambda); err != nil {
			fmt.Fprintln(os.Stderr, "Longbox:", err)
			os.Exit(1)
		}
	}
}

// write builds a program into a folder, with arm for ARM.
func write(p build.Program, dir string, arm bool) error {
	binary := filepath.Join(dir, p.Name, "bootstrap")
	cmd := p.Command(context.Background(), binary, unstamped()...)
	if arm {
		cmd.Env = append(cmd.Env, "GOOS=linux", "GOARCH=arm64")
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w", p.Name, err)
	}
	if err := tell(binary); err != nil || !p.Zipped {
		return err
	}
	file := filepath.Join(dir, p.Name+".zip")
	if err := pack(binary, file); err != nil {
		return fmt.Errorf("zip %s: %w", p.Name, err)
	}
	return tell(file)
}

// tell prints the size of a file.
func tell(path string) error {
	info, err := os.Stat(path)
	if err == nil {
		fmt.Printf("%-28s %6.1f MB\n", path, float64(info.Size())/1e6)
	}
	return err
}

// unstamped returns the flag to build without the commit if git fails, for example for root in another user's clone:
// otherwise the build fails.
func unstamped() []string {
	if exec.Command("git", "rev-parse", "--git-dir").Run() != nil {
		return []string{"-buildvcs=false"}
	}
	return nil
}

// pack writes the zip of a binary.
func pack(binary, path string) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return build.Zip(out, binary)
}
