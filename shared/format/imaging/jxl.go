package imaging

// #cgo pkg-config: vips
// #include <stdlib.h>
// #include <vips/vips.h>
import "C"

import (
	"sync"
	"unsafe"
)

// allowJXL takes JPEG XL from the loaders that start has blocked, for the whole process.
var allowJXL = sync.OnceFunc(func() {
	name := C.CString("VipsForeignLoadJxl")
	defer C.free(unsafe.Pointer(name))
	C.vips_operation_block_set(name, C.FALSE)
})
