#!/usr/bin/env bash
# Builds decode.wasm: the decoder of libjxl, without its encoder, JPEG reconstruction and boxes of metadata, for the
# sandbox of package jxl. As root on Debian 12, with clang, lld, wasi-libc, libc++-dev-wasm32, libclang-rt-dev-wasm32 and
# dpkg-dev. The sources are those of Debian 13, with its patches; the same sources and compiler give the same bytes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# The configured mirror, one release later.
apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
	sed -n 's|\(.*\) bookworm main$|deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \1 trixie main|p' | sort -u >sources.list
mkdir -p lists/partial
options=(-o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$work/lists")
apt-get "${options[@]}" -q update
apt-get "${options[@]}" -q source jpeg-xl=0.11.2-0.1~deb13u2 highway=1.2.0-2
mv jpeg-xl-*/ jxl
mv highway-*/ hwy

# What cmake would generate.
mkdir -p generated/jxl objects
sed 's/@JPEGXL_MAJOR_VERSION@/0/; s/@JPEGXL_MINOR_VERSION@/11/; s/@JPEGXL_PATCH_VERSION@/2/' jxl/lib/jxl/version.h.in >generated/jxl/version.h
for name in jxl_export jxl_cms_export jxl_threads_export; do
	printf '#define %s\n' JXL_EXPORT JXL_CMS_EXPORT JXL_THREADS_EXPORT JXL_DEPRECATED JXL_NO_EXPORT >generated/jxl/$name.h
done

flags=(--target=wasm32-wasi -O2 -msimd128 -w -DNDEBUG -fno-exceptions -fno-rtti -ffunction-sections -fdata-sections
	-ffile-prefix-map="$work"=. -Ijxl -Ijxl/lib/include -Igenerated -Ihwy -DJPEGXL_ENABLE_TRANSCODE_JPEG=0 -DJPEGXL_ENABLE_BOXES=0)
{
	sed -n '/set(JPEGXL_INTERNAL_DEC_SOURCES/,/)/p' jxl/lib/jxl_lists.cmake | grep -o 'jxl/[a-z0-9_/]*\.cc' | sed 's|^|jxl/lib/|'
	printf 'hwy/hwy/%s.cc\n' abort aligned_allocator per_target targets
} >sources
xargs -P "$(nproc)" -I{} bash -c 'source=$1; shift; clang++ -std=c++17 "$@" -c "$source" -o "objects/${source//\//_}.o"' _ {} "${flags[@]}" <sources
clang "${flags[@]}" -c "$here/decode.c" -o objects/decode.o
clang --target=wasm32-wasi -mexec-model=reactor -Wl,--gc-sections -Wl,--strip-all -Wl,-z,stack-size=1048576 \
	-o "$here/../decode.wasm" objects/*.o -lc++ -lc++abi
sha256sum "$here/../decode.wasm"
