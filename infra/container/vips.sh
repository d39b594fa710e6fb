#!/usr/bin/env bash
# Builds libvips from Debian's own source with what Longbox decodes and encodes (jpeg, png, webp, gif, tiff, heif and
# avif, orientation and the colour profiles) and nothing else, into PREFIX. Debian's package links a hundred libraries
# for formats that the code switches off; its libheif links encoders, which are half as large as all the rest.
#
#   vips.sh PREFIX     as root on Debian, with build-essential, cmake, meson, ninja-build, pkg-config and the -dev packages below
set -euo pipefail
prefix=${1:?usage: vips.sh PREFIX}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# The same releases and mirrors as the packages, sources instead; with their patches, which is where security updates are.
apt-get indextargets --format 'deb-src $(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | sort -u >sources.list
mkdir -p lists/partial
options=(-o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$work/lists")
apt-get "${options[@]}" -q update
apt-get "${options[@]}" -q source libheif vips

cmake -S libheif-*/ -B heif -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
	-DENABLE_PLUGIN_LOADING=OFF -DWITH_EXAMPLES=OFF -DWITH_LIBDE265=ON -DWITH_DAV1D=ON \
	-DWITH_X265=OFF -DWITH_AOM_DECODER=OFF -DWITH_AOM_ENCODER=OFF -DWITH_RAV1E=OFF -DWITH_SvtEnc=OFF
ninja -C heif install

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LDFLAGS=-Wl,-rpath,$prefix/lib
cd vips-*/
meson setup build --prefix="$prefix" --libdir=lib --buildtype=release --default-library=shared -Dauto_features=disabled \
	-Dmodules=disabled -Dintrospection=false -Dexamples=false -Dcplusplus=false -Ddoxygen=false -Dgtk_doc=false \
	-Dnsgif=true -Dppm=false -Danalyze=false -Dradiance=false \
	-Djpeg=enabled -Dpng=enabled -Dwebp=enabled -Dtiff=enabled -Dheif=enabled -Dlcms=enabled -Dexif=enabled
ninja -C build install
strip --strip-unneeded "$prefix"/lib/lib{heif,vips}.so.*.*.*
