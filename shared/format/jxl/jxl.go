// Package jxl decodes JPEG XL (ISO/IEC 18181) with libjxl compiled to WebAssembly. An image that exploits a bug of the
// decoder reaches only the memory of its sandbox. source/build.sh builds the module.
package jxl

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"image"
	"sync"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

//go:embed decode.wasm
var module []byte

// program is the module, ready to be instantiated.
type program struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
}

// start compiles the module for the first image, which takes about 0.4 s. The module is kept for the life of the
// process.
var start = sync.OnceValues(func() (program, error) {
	ctx := context.Background()
	p := program{runtime: wazero.NewRuntime(ctx)}
	// The C library imports these. Without files, arguments or clocks they give a module nothing.
	_, err := wasi_snapshot_preview1.Instantiate(ctx, p.runtime)
	if err == nil {
		_, err = p.runtime.NewHostModuleBuilder("host").NewFunctionBuilder().WithFunc(stopped).Export("stopped").Instantiate(ctx)
	}
	if err == nil {
		p.code, err = p.runtime.CompileModule(ctx, module)
	}
	if err != nil {
		return program{}, fmt.Errorf("start the JPEG XL decoder: %w", err)
	}
	return p, nil
})

// stopped is called between the parts of an image, with the context of its decoding.
func stopped(ctx context.Context) uint32 {
	if ctx.Err() != nil {
		return 1
	}
	return 0
}

// Limits of one image.
type Limits struct {
	Pixels int64
	Memory int64 // bytes, from 2 MiB to 4 GiB
	Time   time.Duration
}

// least is more than the bytes of the module's stack and data.
const least = 2 << 20

// Decode decodes the first frame of an image, upright: an *image.Gray, or an *image.NRGBA if it has colours or
// transparency. profile is the ICC profile of its colours; none means sRGB. Each image has its own sandbox, so several
// can be decoded at once.
func Decode(ctx context.Context, src []byte, limits Limits) (img image.Image, profile []byte, err error) {
	p, err := start()
	if err != nil {
		return nil, nil, err
	}
	within, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	img, profile, err = p.decode(within, src, limits)
	switch {
	case err == nil:
		return img, profile, nil
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case within.Err() != nil:
		return nil, nil, fmt.Errorf("it took longer than %s", limits.Time)
	}
	return nil, nil, err
}

func (p program) decode(ctx context.Context, src []byte, limits Limits) (image.Image, []byte, error) {
	if limits.Memory < least {
		return nil, nil, fmt.Errorf("the decoder itself needs more than %d bytes of memory", limits.Memory)
	}
	mapped, err := syscall.Mmap(-1, 0, int(limits.Memory), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("memory for a JPEG XL: %w", err)
	}
	defer func() { _ = syscall.Munmap(mapped) }() // it was mapped as a whole, so this cannot fail
	lent := experimental.WithMemoryAllocator(ctx, memory(mapped))
	sandbox, err := p.runtime.InstantiateModule(lent, p.code, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = sandbox.Close(context.WithoutCancel(ctx)) }() // it has no files, and nothing runs in it any more
	return (&calls{ctx: ctx, sandbox: sandbox}).decode(src, limits)
}

// calls calls functions of a sandbox until one fails.
type calls struct {
	ctx     context.Context
	sandbox api.Module
	err     error
}

func (c *calls) decode(src []byte, limits Limits) (image.Image, []byte, error) {
	at := c.call("buffer", uint64(len(src)))
	if c.err != nil || at == 0 || !c.sandbox.Memory().Write(at, src) {
		return nil, nil, errors.Join(fmt.Errorf("it does not fit into %d bytes of memory", limits.Memory), c.err)
	}
	switch status := c.call("decode", uint64(at), uint64(len(src)), uint64(limits.Pixels)); { // see source/decode.c
	case c.err != nil:
		return nil, nil, fmt.Errorf("the decoder was stopped: %w", c.err)
	case status == 2:
		return nil, nil, errors.New("it has more pixels than its header says")
	case status != 0:
		return nil, nil, fmt.Errorf("the decoder refuses it, or needs more than %d bytes of memory", limits.Memory)
	}
	// Results of a sandbox are untrusted.
	width, height, channels := int(c.call("width")), int(c.call("height")), int(c.call("channels"))
	if c.err == nil && (width < 1 || height < 1 || int64(width) > limits.Pixels/int64(height) || channels != 1 && channels != 4) {
		c.err = fmt.Errorf("the decoder reports %d x %d pixels of %d bytes", width, height, channels)
	}
	bounds, stride := image.Rect(0, 0, width, height), width*channels
	pixels, profile := c.bytes("pixels", stride*height), c.bytes("profile", int(c.call("profile_size")))
	if c.err != nil {
		return nil, nil, c.err
	}
	if channels == 1 {
		return &image.Gray{Pix: pixels, Stride: stride, Rect: bounds}, profile, nil
	}
	return &image.NRGBA{Pix: pixels, Stride: stride, Rect: bounds}, profile, nil
}

func (c *calls) call(name string, args ...uint64) uint32 {
	if c.err != nil {
		return 0
	}
	results, err := c.sandbox.ExportedFunction(name).Call(c.ctx, args...)
	if c.err = err; err != nil {
		return 0
	}
	return uint32(results[0])
}

// bytes copies n bytes from the address that a function of the sandbox returns.
func (c *calls) bytes(name string, n int) []byte {
	at := c.call(name)
	if c.err != nil || n == 0 {
		return nil
	}
	view, ok := c.sandbox.Memory().Read(at, uint32(n))
	if !ok || len(view) != n {
		c.err = fmt.Errorf("the decoder's %s are outside its memory", name)
		return nil
	}
	return append([]byte(nil), view...)
}
