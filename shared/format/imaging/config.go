package imaging

import (
	"fmt"
	"time"
)

// Config holds the limits of a Renderer. Zero fields mean the defaults.
type Config struct {
	// MemoryBytes is shared by all concurrent renders.
	MemoryBytes int64 `env:"RENDER_MEMORY" envDefault:"402653184"`
	// MaxPixels limits images that a decoder must hold completely.
	MaxPixels int64 `env:"RENDER_MAX_PIXELS" envDefault:"50000000"`
	// MaxStreamPixels limits images that are decoded line by line.
	MaxStreamPixels int64 `env:"RENDER_MAX_STREAM_PIXELS" envDefault:"268435456"`
	// MaxBytes limits the encoded source.
	MaxBytes int64 `env:"RENDER_MAX_BYTES" envDefault:"67108864"`
	// MaxWaiting limits the renders that wait for memory.
	MaxWaiting int `env:"RENDER_MAX_WAITING" envDefault:"64"`
	// JXLMemory and JXLTimeout limit the decoding of one JPEG XL. The memory is part of MemoryBytes.
	JXLMemory  int64         `env:"RENDER_JPEG_XL_MEMORY" envDefault:"268435456"`
	JXLTimeout time.Duration `env:"RENDER_JPEG_XL_TIMEOUT" envDefault:"20s"`
}

// minMemory is what one render of an ordinary page needs.
const minMemory = 64 << 20

// minJXLMemory is what the JPEG XL decoder needs for a small page.
const minJXLMemory = 16 << 20

func (c Config) withDefaults() Config {
	def := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.MemoryBytes, 384<<20)
	def(&c.MaxPixels, 50_000_000)
	def(&c.MaxStreamPixels, 1<<28)
	def(&c.MaxBytes, 64<<20)
	def(&c.JXLMemory, 256<<20)
	if c.JXLTimeout == 0 {
		c.JXLTimeout = 20 * time.Second
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = 64
	}
	return c
}

// Validate returns an error that names the first invalid setting and the valid values. The zero value stands for the
// defaults.
func (c Config) Validate() error {
	switch {
	case c == (Config{}):
		return nil
	case c.MemoryBytes < minMemory:
		return fmt.Errorf("RENDER_MEMORY is %d bytes: set at least %d", c.MemoryBytes, minMemory)
	case c.MaxPixels < 1, c.MaxStreamPixels < 1:
		return fmt.Errorf("RENDER_MAX_PIXELS and RENDER_MAX_STREAM_PIXELS must be at least 1")
	case c.MaxStreamPixels > 1<<32:
		return fmt.Errorf("RENDER_MAX_STREAM_PIXELS is %d: set at most %d", c.MaxStreamPixels, int64(1)<<32)
	case c.MaxPixels > c.MaxStreamPixels:
		return fmt.Errorf("RENDER_MAX_PIXELS (%d) must not exceed RENDER_MAX_STREAM_PIXELS (%d)", c.MaxPixels, c.MaxStreamPixels)
	case c.MaxBytes < 1:
		return fmt.Errorf("RENDER_MAX_BYTES is %d: set at least 1", c.MaxBytes)
	case c.JXLMemory < minJXLMemory, c.JXLMemory > 1<<32:
		return fmt.Errorf("RENDER_JPEG_XL_MEMORY is %d bytes: set %d to %d", c.JXLMemory, minJXLMemory, int64(1)<<32)
	case c.JXLTimeout <= 0:
		return fmt.Errorf("RENDER_JPEG_XL_TIMEOUT is %s: set a time above 0", c.JXLTimeout)
	case c.MaxWaiting < 1:
		return fmt.Errorf("RENDER_MAX_WAITING is %d: set at least 1", c.MaxWaiting)
	}
	return nil
}
