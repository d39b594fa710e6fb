package imaging

// #include <stdlib.h>
// #ifdef __GLIBC__
// #include <malloc.h>
// #endif
// static void keep_heap_small(void) {
// #ifdef __GLIBC__
// 	mallopt(M_ARENA_MAX, 2);
// 	mallopt(M_MMAP_THRESHOLD, 512 * 1024);
// 	mallopt(M_TRIM_THRESHOLD, 512 * 1024);
// #endif
// }
import "C"

// keepHeapSmall stops two habits of glibc: a heap for each of Go's threads,
// over which renders wander, and a threshold that grows with the largest
// picture seen, after which pictures are carved from the heap and leave it full
// of holes. Measured over 2,000 mixed renders, four at once: 90 MB held instead
// of 150, at the same speed.
func keepHeapSmall() { C.keep_heap_small() }
