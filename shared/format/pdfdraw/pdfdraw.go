// Package pdfdraw draws pages of PDF documents with PDFium, compiled to WebAssembly. A malicious document only gets
// control of a sandbox without network, other memory, or files except fonts. Documents are read in ranges, as far as a
// page needs them.
//
// Compiling the module takes seconds. If CacheDir is set, the result is cached there for the next process.
package pdfdraw

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/jpeg"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/responses"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"

	"github.com/longbox/longbox/shared/format/archive"
)

// Config holds the limits of a Renderer. Zero fields mean the defaults.
type Config struct {
	Side     int           `env:"PDF_PAGE_PIXELS" envDefault:"2000"` // longer side of a drawn page
	Memory   int64         `env:"PDF_MEMORY" envDefault:"268435456"` // bytes of the sandbox
	Timeout  time.Duration `env:"PDF_TIMEOUT" envDefault:"20s"`      // for one page
	CacheDir string        `env:"PDF_CACHE_DIR"`                     // for the compiled module; empty: compiled once per process
	AtOnce   int           `env:"PDF_PARALLEL" envDefault:"1"`       // concurrent pages, each with memory of its own
	// Fonts is a folder of fonts for text whose font is not embedded, mainly Chinese, Japanese and Korean.
	Fonts string `env:"PDF_FONTS" envDefault:"/usr/share/fonts"`
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
	if c.Fonts == "" {
		c.Fonts = "/usr/share/fonts"
	}
	return c
}

// Validate returns an error that names the first invalid setting and the valid values. The zero value stands for the
// defaults.
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
	case !filepath.IsAbs(c.Fonts):
		return fmt.Errorf("PDF_FONTS: must be the absolute path of a folder, is %q", c.Fonts)
	case c.CacheDir != "" && !filepath.IsAbs(c.CacheDir):
		return fmt.Errorf("PDF_CACHE_DIR: must be the absolute path of a folder, is %q", c.CacheDir)
	}
	return nil
}

// Renderer draws pages. It starts with the first one. Make one per process.
type Renderer struct {
	cfg  Config
	free chan *sandbox // idle sandboxes

	mu    sync.Mutex
	cache wazero.CompilationCache // shared by all sandboxes; nil before the first
}

// sandbox is one PDFium with its own memory, which draws one page at a time.
type sandbox struct {
	pool pdfium.Pool // with one instance; nil if it must be started
}

// New returns a Renderer.
func New(c Config) *Renderer {
	r := &Renderer{cfg: c.withDefaults()}
	r.free = make(chan *sandbox, r.cfg.AtOnce)
	for range r.cfg.AtOnce {
		r.free <- &sandbox{}
	}
	return r
}

const wasmPage = 64 << 10

// take waits for an idle sandbox. The caller must return it to r.free.
func (r *Renderer) take(ctx context.Context) (*sandbox, error) {
	var s *sandbox
	select {
	case s = <-r.free:
	case <-ctx.Done():
		return nil, &archive.Undrawn{Err: fmt.Errorf("PDFium is busy with other pages: %w", ctx.Err())}
	}
	started := make(chan error, 1)
	go func() { started <- r.start(s) }()
	select {
	case err := <-started:
		if err == nil {
			return s, nil
		}
		r.free <- s
		return nil, &archive.Undrawn{Err: err}
	case <-ctx.Done():
		go func() { // a running start is completed for the next caller, who gets its own error
			<-started
			r.free <- s
		}()
		return nil, &archive.Undrawn{Err: fmt.Errorf("PDFium is still starting: %w", ctx.Err())}
	}
}

// start starts a sandbox unless it is running. Only one starts at a time: the first one compiles for all.
func (r *Renderer) start(s *sandbox) error {
	if s.pool != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cache == nil && r.cfg.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(r.cfg.CacheDir)
		if err == nil {
			s.pool, err = r.cfg.compile(cache)
		}
		if err == nil {
			r.cache = cache
			return nil
		}
		slog.Warn("PDF_CACHE_DIR cannot be used; this process compiles PDFium for itself", "folder", r.cfg.CacheDir, "error", err)
	}
	if r.cache == nil {
		r.cache = wazero.NewCompilationCache()
	}
	var err error
	s.pool, err = r.cfg.compile(r.cache)
	return err
}

// compile returns a sandbox that is not started; it compiles PDFium unless the cache has it.
func (c Config) compile(cache wazero.CompilationCache) (pdfium.Pool, error) {
	run := wazero.NewRuntimeConfig().WithMemoryLimitPages(uint32(c.Memory / wasmPage)).WithCloseOnContextDone(true).WithCompilationCache(cache)
	// Without a file system of its own the sandbox would get the whole one of the machine.
	files := wazero.NewFSConfig().WithFSMount(fontsIn(c.Fonts), "/")
	pool, err := webassembly.Init(webassembly.Config{MaxTotal: 1, MaxIdle: 1, MinIdle: 0,
		FSConfig: files, RuntimeConfig: run, Stdout: io.Discard, Stderr: io.Discard})
	if err != nil {
		return nil, fmt.Errorf("PDFium cannot be started: %w", err)
	}
	return pool, nil
}

// Draw draws page n (from 0) of a document of size bytes as a JPEG. Problems of the document are an *archive.Error,
// other failures an *archive.Undrawn; errors of document are passed on. It waits for its turn until ctx ends.
func (r *Renderer) Draw(ctx context.Context, document io.ReaderAt, size int64, n int) ([]byte, error) {
	s, err := r.take(ctx)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	instance, err := s.pool.GetInstanceWithContext(limited)
	var lib library
	if err == nil {
		lib, err = libraryOf(instance)
	}
	if err != nil {
		err = errors.Join(err, s.stop())
		r.free <- s
		return nil, &archive.Undrawn{Err: err}
	}
	source := &remembering{ctx: limited, r: io.NewSectionReader(document, 0, size)}
	done := r.begin(lib, source, size, n)
	select {
	case d := <-done:
		// An instance is never reused, so a failure to close it does not matter: the effects of a document end with it.
		_ = instance.Close()
		r.free <- s
		switch {
		case d.err == nil && source.failed == nil:
			return d.image, nil
		case limited.Err() != nil:
			return nil, r.cutShort(ctx, n)
		case source.failed != nil:
			return nil, source.failed
		}
		return nil, explain(n, d.err)
	case <-limited.Done():
		err := errors.Join(r.cutShort(ctx, n), s.end(instance))
		go func() { // the next one starts when the memory is free
			<-done
			r.free <- s
		}()
		return nil, err
	}
}

// cutShort returns why page n was not drawn completely.
func (r *Renderer) cutShort(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil {
		return &archive.Undrawn{Err: err}
	}
	return &archive.Error{Kind: archive.TooLarge, Msg: fmt.Sprintf("page %d of the PDF document took longer to draw than the limit of %s", n+1, r.cfg.Timeout)}
}

// drawn is the image of a page, or an error.
type drawn struct {
	image []byte
	err   error
}

// library is the drawing interface of an instance. Kill may be called concurrently, but not with the instance's own
// methods.
type library interface {
	OpenDocument(*requests.OpenDocument) (*responses.OpenDocument, error)
	RenderPageInPixels(*requests.RenderPageInPixels) (*responses.RenderPageInPixels, error)
	FPDFPage_GetAnnotCount(*requests.FPDFPage_GetAnnotCount) (*responses.FPDFPage_GetAnnotCount, error)
	FPDFPage_GetAnnot(*requests.FPDFPage_GetAnnot) (*responses.FPDFPage_GetAnnot, error)
	FPDFAnnot_GetSubtype(*requests.FPDFAnnot_GetSubtype) (*responses.FPDFAnnot_GetSubtype, error)
}

func libraryOf(instance pdfium.Pdfium) (library, error) {
	lib, ok := instance.GetImplementation().(library)
	if !ok {
		return nil, fmt.Errorf("PDFium is a %T, which cannot draw", instance.GetImplementation())
	}
	return lib, nil
}

// begin draws until it is done or the sandbox ends.
func (r *Renderer) begin(lib library, source *remembering, size int64, n int) <-chan drawn {
	done := make(chan drawn, 1)
	go func() {
		var d drawn
		defer func() {
			if p := recover(); p != nil { // the sandbox ended during a call
				d = drawn{err: fmt.Errorf("PDFium ended: %v", p)}
			}
			source.r = nil // the library keeps every reader of an unclosed document
			done <- d
		}()
		d.image, d.err = r.draw(lib, source, size, n)
	}()
	return done
}

// end stops drawing in the sandbox. Kill of go-pdfium 1.17.2 only removes the instance from its pool and fails. The
// pool can then be closed, which stops the drawing.
func (s *sandbox) end(instance pdfium.Pdfium) error {
	killed := instance.Kill()
	if killed == nil {
		return nil
	}
	if err := s.stop(); err != nil {
		return errors.Join(killed, err)
	}
	return nil
}

// stop ends the whole sandbox. The next caller that takes it starts it again.
func (s *sandbox) stop() error {
	pool := s.pool
	s.pool = nil
	return pool.Close()
}

func (r *Renderer) draw(lib library, source io.ReadSeeker, size int64, n int) ([]byte, error) {
	doc, err := lib.OpenDocument(&requests.OpenDocument{FileReader: source, FileReaderSize: size})
	if err != nil {
		return nil, err
	}
	at := requests.Page{ByIndex: &requests.PageByIndex{Document: doc.Document, Index: n}}
	page, err := lib.RenderPageInPixels(&requests.RenderPageInPixels{Page: at, Width: r.cfg.Side, Height: r.cfg.Side,
		RenderFlags: enums.FPDF_RENDER_FLAG_ANNOT, RenderForm: hasField(lib, at)})
	if err != nil {
		return nil, err
	}
	defer page.Cleanup()
	onWhite(page.Result.Image.Pix)
	var out bytes.Buffer
	const quality = 90
	if err := jpeg.Encode(&out, page.Result.Image, &jpeg.Options{Quality: quality}); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// hasField reports whether a page has a form field. Fields are drawn separately from other annotations, and PDFium
// reads the form of the whole document for them: thousands of fields take seconds.
func hasField(lib library, page requests.Page) bool {
	all, err := lib.FPDFPage_GetAnnotCount(&requests.FPDFPage_GetAnnotCount{Page: page})
	if err != nil {
		return false
	}
	const most = 1000 // annotations that are checked
	for i := range min(all.Count, most) {
		a, err := lib.FPDFPage_GetAnnot(&requests.FPDFPage_GetAnnot{Page: page, Index: i})
		if err != nil {
			continue
		}
		kind, err := lib.FPDFAnnot_GetSubtype(&requests.FPDFAnnot_GetSubtype{Annotation: a.Annotation})
		if err == nil && kind.Subtype == enums.FPDF_ANNOT_SUBTYPE_WIDGET {
			return true
		}
	}
	return false
}

// onWhite draws pixels onto white: the library leaves the background of a page with blending transparent. The colours
// are not premultiplied.
func onWhite(pixels []byte) {
	for ; len(pixels) >= 4; pixels = pixels[4:] {
		alpha := int(pixels[3])
		if alpha == 0xff {
			continue
		}
		for i, c := range pixels[:3] {
			pixels[i] = byte((int(c)*alpha + 0xff*(0xff-alpha)) / 0xff)
		}
		pixels[3] = 0xff
	}
}

// explain describes an error of PDFium for the owner of the document.
func explain(n int, err error) error {
	if errors.Is(err, pdfiumerrors.ErrPassword) || errors.Is(err, pdfiumerrors.ErrSecurity) {
		return &archive.Error{Kind: archive.Encrypted, Msg: "the PDF document is encrypted: remove its password", Err: err}
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return &archive.Error{Kind: archive.Corrupt, Msg: fmt.Sprintf("page %d of the PDF document cannot be drawn: %.200s", n+1, text), Err: err}
}

// remembering records a read error, which PDFium does not report. It reads until ctx ends.
type remembering struct {
	ctx    context.Context
	r      *io.SectionReader
	failed error
}

func (s *remembering) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		s.failed = err
		return 0, err
	}
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = err
	}
	return n, err
}

func (s *remembering) Seek(offset int64, whence int) (int64, error) { return s.r.Seek(offset, whence) }
