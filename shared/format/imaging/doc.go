// Package imaging makes renditions: smaller copies of a page that fit into a box, as JPEG, PNG or WebP. It is the only
// importer of libvips.
//
// The header is checked before anything is decoded. First mediatype detects the type and reads the size, then libvips
// opens the header and must agree. SVG, PDF and everything that libvips marks as unsafe for untrusted input are
// refused. BMP and JPEG XL are among these, but are decoded without libvips, by Go and in a sandbox (package jxl), and
// passed to it as PNG.
//
// Limits: an image that can be decoded line by line (baseline JPEG, PNG without interlacing) may have MaxStreamPixels,
// because a webtoon strip of 4000 x 60,016 pixels is legitimate and needs memory for a few lines only. Every other
// image is held completely by its decoder and may have MaxPixels. In addition, the working set estimated from the
// header, with the largest output that the pixels can have, must fit into MemoryBytes, the budget of all renders of a
// Renderer. As many renders run at once as fit, the others wait in order of arrival, and beyond MaxWaiting they are
// refused.
package imaging
