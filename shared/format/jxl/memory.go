package jxl

import "github.com/tetratelabs/wazero/experimental"

// memory is that of one sandbox: addresses for all that it may have, which take no memory until they are used, and
// whose memory goes back to the system at the end. On Go's heap each growth would be a copy, and all of them garbage.
type memory []byte

// Allocate implements experimental.MemoryAllocator.
func (m memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements experimental.LinearMemory.
func (m memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m)) {
		return nil
	}
	return m[:size]
}

// Free implements experimental.LinearMemory: who mapped it frees it.
func (m memory) Free() {}
