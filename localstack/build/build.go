// Package build builds the programs as they are deployed.
package build

import (
	"archive/zip"
	"compress/flate"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Program is one binary: its package, and whether it links libvips.
type Program struct {
	Name, Package string
	Vips          bool
	Zipped        bool // The relay is no Lambda function; plugin needs an image with the programs that it starts.
}

// Programs are the programs that are deployed.
var Programs = []Program{
	{Name: "api", Package: "./functions/api", Zipped: true},
	{Name: "scheduler", Package: "./functions/scheduler", Zipped: true},
	{Name: "migrate", Package: "./functions/migrate", Zipped: true},
	{Name: "operator", Package: "./functions/operator", Zipped: true},
	{Name: "media", Package: "./functions/media", Vips: true, Zipped: true},
	{Name: "worker", Package: "./functions/worker", Vips: true, Zipped: true},
	{Name: "plugin", Package: "./functions/plugin"},
	{Name: "sse-relay", Package: "./sse-relay"},
}

// Command returns the command that builds a program, in the folder of go.mod. Later flags override earlier ones.
func (p Program) Command(ctx context.Context, binary string, flags ...string) *exec.Cmd {
	cgo := "CGO_ENABLED=0"
	if p.Vips {
		cgo = "CGO_ENABLED=1"
	}
	args := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-tags=lambda.norpc", "-o", binary}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, p.Package)...)
	cmd.Env = append(os.Environ(), cgo)
	return cmd
}

// Zip writes a zip with one executable, for Lambda. The same binary gives the same bytes.
func Zip(out io.Writer, binary string) error {
	in, err := os.Open(binary)
	if err != nil {
		return err
	}
	defer in.Close()
	z := zip.NewWriter(out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	header := &zip.FileHeader{Name: filepath.Base(binary), Method: zip.Deflate, Modified: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	header.SetMode(0o755)
	entry, err := z.CreateHeader(header)
	if err != nil {
		return err
	}
	if _, err := io.Copy(entry, in); err != nil {
		return err
	}
	return z.Close()
}
