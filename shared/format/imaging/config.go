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
		return fmt.Errorf("RENDER_MEMORY: must be at least %d bytes, is %d", minMemory, c.MemoryBytes)
	case c.MaxPixels < 1:
		return fmt.Errorf("RENDER_MAX_PIXELS: must be at least 1, is %d", c.MaxPixels)
	case c.MaxStreamPixels < 1, c.MaxStreamPixels > 1<<32:
		return fmt.Errorf("RENDER_MAX_STREAM_PIXELS: must be 1 to %d, is %d", int64(1)<<32, c.MaxStreamPixels)
	case c.MaxPixels > c.MaxStreamPixels:
		return fmt.Errorf("RENDER_MAX_PIXELS: must be at most RENDER_MAX_STREAM_PIXELS (%d), is %d", c.MaxStreamPixels, c.MaxPixels)
	case c.MaxBytes < 1:
		return fmt.Errorf("RENDER_MAX_BYTES: must be at least 1, is %d", c.MaxBytes)
	case c.JXLMemory < minJXLMemory, c.JXLMemory > 1<<32:
		return fmt.Errorf("RENDER_JPEG_XL_MEMORY: must be %d to %d bytes, is %d", minJXLMemory, int64(1)<<32, c.JXLMemory)
	case c.JXLTimeout <= 0:
		return fmt.Errorf("RENDER_JPEG_XL_TIMEOUT: must be above 0, is %s", c.JXLTimeout)
	case c.MaxWaiting < 1:
		return fmt.Errorf("RENDER_MAX_WAITING: must be at least 1, is %d", c.MaxWaiting)
	}
	return nil
}
