// Package imaging makes renditions: smaller copies of a page in a box, as JPEG,
// PNG or WebP. It is the only importer of libvips.
//
// Nothing is decoded before the header was checked. First mediatype names the
// type and reads the size; then libvips opens the header and must agree with
// it. SVG, PDF and whatever libvips marks as unsafe for untrusted input are
// refused. BMP and JPEG XL, which are among these, are decoded without it, by Go
// and in a sandbox (package jxl), and given to it as PNG.
//
// Limits. An image that can be decoded line by line (baseline JPEG, PNG without
// interlacing) may have MaxStreamPixels, because a webtoon strip of 4000 x
// 60,016 pixels is legitimate and costs only some lines of memory. Every other
// image is held whole by its decoder and may have MaxPixels. On top of both,
// the working set estimated from the header must fit into MemoryBytes, the
// budget that all renders of a Renderer share: as many run at once as fit, the
// rest wait in the order they came, and beyond MaxWaiting they are turned away.
package imaging
