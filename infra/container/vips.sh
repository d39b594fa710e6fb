#!/usr/bin/env bash
# Builds libvips from Debian's own source with what Longbox decodes and encodes (jpeg, png, webp, gif, tiff, heif and
# avif, orientation and the colour profiles) and nothing else, into PREFIX. Debian's package links a hundred libraries
# for formats that the code switches off; its libheif links encoders, which are half as large as all the rest.
#
#   vips.sh PREFIX [ARCHITECTURE]     as root on Debian, with the packages that the Dockerfile installs; without an
#                                     architecture, for this machine's
set -euo pipefail
prefix=${1:?usage: vips.sh PREFIX [ARCHITECTURE]}
target=$(dpkg-architecture -a "${2:-$(dpkg --print-architecture)}" -q DEB_HOST_MULTIARCH) # As in x86_64-linux-gnu-gcc.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# The same releases and mirrors as the packages, sources instead; with their patches, which is where security updates are.
apt-get indextargets --format 'deb-src $(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | sort -u >sources.list
mkdir -p lists/partial
options=(-o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$work/lists")
apt-get "${options[@]}" -q update
apt-get "${options[@]}" -q source libheif vips

export PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig:/usr/lib/$target/pkgconfig:/usr/share/pkgconfig
export CC=$target-gcc CXX=$target-g++ LDFLAGS=-Wl,-rpath,$prefix/lib
cmake -S libheif-*/ -B heif -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
	-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="${target%%-*}" \
	-DENABLE_PLUGIN_LOADING=OFF -DWITH_EXAMPLES=OFF -DWITH_LIBDE265=ON -DWITH_DAV1D=ON \
	-DWITH_X265=OFF -DWITH_AOM_DECODER=OFF -DWITH_AOM_ENCODER=OFF -DWITH_RAV1E=OFF -DWITH_SvtEnc=OFF
ninja -C heif install

cat >cross <<EOF
[binaries]
c = '$CC'
cpp = '$CXX'
ar = '$target-ar'
pkgconfig = 'pkg-config'
[host_machine]
system = 'linux'
cpu_family = '${target%%-*}'
cpu = '${target%%-*}'
endian = 'little'
EOF
cd vips-*/
meson setup build --cross-file ../cross --prefix="$prefix" --libdir=lib --buildtype=release --default-library=shared \
	-Dauto_features=disabled -Dmodules=disabled -Dintrospection=false -Dexamples=false -Dcplusplus=false -Ddoxygen=false -Dgtk_doc=false \
	-Dnsgif=true -Dppm=false -Danalyze=false -Dradiance=false \
	-Djpeg=enabled -Dpng=enabled -Dwebp=enabled -Dtiff=enabled -Dheif=enabled -Dlcms=enabled -Dexif=enabled
ninja -C build install
"$target-strip" --strip-unneeded "$prefix"/lib/lib{heif,vips}.so.*.*.*
