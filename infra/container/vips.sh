#!/usr/bin/env bash
# Builds libvips from Debian's own source with what Longbox decodes and encodes (jpeg, png, webp, gif, heif and avif, orientation and the
# colour profiles) and nothing else, into PREFIX. Debian's package links a hundred libraries for formats that the code
# switches off.
#
#   vips.sh PREFIX     as root on Debian, with build-essential, meson, ninja-build, pkg-config and the -dev packages below
set -euo pipefail
prefix=${1:?usage: vips.sh PREFIX}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# The same release and mirrors as the packages, sources instead.
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
echo "deb-src $mirror $codename main" >sources.list
mkdir -p lists/partial
options=(-o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$work/lists")
apt-get "${options[@]}" -q update
apt-get "${options[@]}" -q source --download-only vips
mkdir source
tar -xf vips_*.orig.tar.* -C source --strip-components=1

cd source
meson setup build --prefix="$prefix" --libdir=lib --buildtype=release --default-library=shared -Dauto_features=disabled \
	-Dmodules=disabled -Dintrospection=false -Dexamples=false -Dcplusplus=false -Ddoxygen=false -Dgtk_doc=false \
	-Dnsgif=true -Dppm=false -Danalyze=false -Dradiance=false \
	-Djpeg=enabled -Dpng=enabled -Dwebp=enabled -Dheif=enabled -Dlcms=enabled -Dexif=enabled
ninja -C build
ninja -C build install
strip --strip-unneeded "$prefix"/lib/libvips.so.*.*.*
