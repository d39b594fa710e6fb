package jxl

import "github.com/tetratelabs/wazero/experimental"

// memory is the memory of one sandbox: reserved address space that takes no memory until it is used, and is returned to
// the system at the end. On Go's heap each growth would be a copy, and all copies garbage.
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

// Free implements experimental.LinearMemory. The memory is unmapped by the code that mapped it.
func (m memory) Free() {}
