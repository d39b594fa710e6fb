// Package pdfdraw draws pages of PDF documents: with PDFium, compiled to WebAssembly, so that a document that breaks
// it breaks a sandbox without files, network or other memory. Documents are read through ranges, as far as a page
// needs them.
//
// Compiling the module takes seconds; where CacheDir is set, the result is kept there for the next process.
package pdfdraw

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/jpeg"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/klippa-app/go-pdfium"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"

	"github.com/longbox/longbox/shared/format/archive"
)

// Config holds the limits of a Renderer. Zero fields mean the defaults.
type Config struct {
	Side     int           `env:"PDF_PAGE_PIXELS" envDefault:"2000"` // the longer side of a drawn page
	Memory   int64         `env:"PDF_MEMORY" envDefault:"268435456"` // bytes of the sandbox
	Timeout  time.Duration `env:"PDF_TIMEOUT" envDefault:"20s"`      // for one page
	CacheDir string        `env:"PDF_CACHE_DIR"`                     // of the compiled module; empty: compiled at every start
	AtOnce   int           `env:"PDF_PARALLEL" envDefault:"1"`       // pages drawn at once, each with memory of its own
}

func (c Config) withDefaults() Config {
	if c.Side == 0 {
		c.Side = 2000
	}
	if c.Memory == 0 {
		c.Memory = 256 << 20
	}
	if c.Timeout == 0 {
		c.Timeout = 20 * time.Second
	}
	if c.AtOnce == 0 {
		c.AtOnce = 1
	}
	return c
}

// Validate names the first setting that cannot work and what would. The zero value stands for the defaults.
func (c Config) Validate() error {
	switch {
	case c == (Config{}):
		return nil
	case c.Side < 100 || c.Side > 10_000:
		return fmt.Errorf("PDF_PAGE_PIXELS: must be 100 to 10000, is %d", c.Side)
	case c.Memory < 64<<20 || c.Memory > 4<<30:
		return fmt.Errorf("PDF_MEMORY: must be 64 MiB to 4 GiB, is %d", c.Memory)
	case c.Timeout < time.Second:
		return fmt.Errorf("PDF_TIMEOUT: must be at least 1s, is %s", c.Timeout)
	case c.AtOnce < 1 || c.AtOnce > 16:
		return fmt.Errorf("PDF_PARALLEL: must be 1 to 16, is %d", c.AtOnce)
	}
	return nil
}

// Renderer draws pages. It starts with the first one; make one per process.
type Renderer struct {
	cfg Config

	mu   sync.Mutex
	pool pdfium.Pool
}

// New returns a Renderer.
func New(c Config) *Renderer { return &Renderer{cfg: c.withDefaults()} }

const wasmPage = 64 << 10

func (r *Renderer) start() (pdfium.Pool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pool != nil {
		return r.pool, nil
	}
	run := wazero.NewRuntimeConfig().WithMemoryLimitPages(uint32(r.cfg.Memory / wasmPage)).WithCloseOnContextDone(true)
	if r.cfg.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(r.cfg.CacheDir)
		if err != nil {
			return nil, fmt.Errorf("PDF_CACHE_DIR: %w", err)
		}
		run = run.WithCompilationCache(cache)
	}
	// Without a file system of its own the library would give the sandbox the whole one.
	pool, err := webassembly.Init(webassembly.Config{MaxTotal: r.cfg.AtOnce, MaxIdle: r.cfg.AtOnce, MinIdle: 0,
		FSConfig: wazero.NewFSConfig(), RuntimeConfig: run, Stdout: io.Discard, Stderr: io.Discard})
	if err != nil {
		return nil, fmt.Errorf("start PDFium: %w", err)
	}
	r.pool = pool
	return pool, nil
}

// Draw draws page n (from 0) of a document of size bytes as a JPEG. What is wrong with the document is an
// *archive.Error; errors of document are passed on.
func (r *Renderer) Draw(ctx context.Context, document io.ReaderAt, size int64, n int) ([]byte, error) {
	pool, err := r.start()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	instance, err := pool.GetInstanceWithContext(limited)
	if err != nil {
		return nil, fmt.Errorf("wait for PDFium: %w", errors.Join(err, limited.Err()))
	}
	if limited.Err() != nil { // nobody waits any more
		return nil, errors.Join(limited.Err(), instance.Close())
	}
	type drawn struct {
		image []byte
		err   error
	}
	done := make(chan drawn, 1)
	source := &remembering{r: io.NewSectionReader(document, 0, size)}
	go func() {
		defer func() {
			if p := recover(); p != nil { // the sandbox ended in the middle of a call
				done <- drawn{err: fmt.Errorf("PDFium ended: %v", p)}
			}
		}()
		image, err := r.draw(instance, source, size, n)
		done <- drawn{image, err}
	}()
	select {
	case d := <-done:
		// An instance is not used twice, so a failure to close it changes nothing: what a document did to it ends with it.
		_ = instance.Close()
		switch {
		case source.failed != nil:
			return nil, source.failed
		case d.err != nil:
			return nil, explain(n, d.err)
		}
		return d.image, nil
	case <-limited.Done():
		_ = instance.Kill() // it is given up either way
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, &archive.Error{Kind: archive.TooLarge, Msg: fmt.Sprintf("page %d of the PDF document took longer to draw than the limit of %s", n+1, r.cfg.Timeout)}
	}
}

func (r *Renderer) draw(instance pdfium.Pdfium, source io.ReadSeeker, size int64, n int) ([]byte, error) {
	doc, err := instance.OpenDocument(&requests.OpenDocument{FileReader: source, FileReaderSize: size})
	if err != nil {
		return nil, err
	}
	page, err := instance.RenderPageInPixels(&requests.RenderPageInPixels{Width: r.cfg.Side, Height: r.cfg.Side,
		Page: requests.Page{ByIndex: &requests.PageByIndex{Document: doc.Document, Index: n}}})
	if err != nil {
		return nil, err
	}
	defer page.Cleanup()
	var out bytes.Buffer
	const quality = 90
	if err := jpeg.Encode(&out, page.Result.Image, &jpeg.Options{Quality: quality}); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// explain puts an error of PDFium into words for the owner of the document.
func explain(n int, err error) error {
	if errors.Is(err, pdfiumerrors.ErrPassword) || errors.Is(err, pdfiumerrors.ErrSecurity) {
		return &archive.Error{Kind: archive.Encrypted, Msg: "the PDF document is encrypted: remove its password", Err: err}
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return &archive.Error{Kind: archive.Corrupt, Msg: fmt.Sprintf("page %d of the PDF document cannot be drawn: %.200s", n+1, text), Err: err}
}

// remembering remembers why reading failed, which PDFium does not tell.
type remembering struct {
	r      *io.SectionReader
	failed error
}

func (s *remembering) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = err
	}
	return n, err
}

func (s *remembering) Seek(offset int64, whence int) (int64, error) { return s.r.Seek(offset, whence) }
