#!/usr/bin/env bash
# Collects what a program needs to run into an empty folder that becomes the image: itself, the shared libraries it is
# linked with and their loader, certificates, a user. No shell, no package manager. Nothing is run, as ldd would: the
# program may be for another processor than this machine's.
#
#   closure.sh PROGRAM FOLDER [LIBRARIES ...]     the last are the folders of its libraries, in the loader's order
set -euo pipefail
program=${1:?usage: closure.sh PROGRAM FOLDER [LIBRARIES ...]}
root=${2:?usage: closure.sh PROGRAM FOLDER [LIBRARIES ...]}
folders=("${@:3}")
loader=$(readelf -l "$program" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p') # A static program has none.

# collect copies what a file is linked with, and what that is linked with.
collect() {
	local name folder path
	for name in $(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
		[[ $name != "${loader##*/}" ]] || continue # libc is linked with it, too; it has its own place.
		path=
		for folder in "${folders[@]}"; do
			[[ -n $path || ! -e $folder/$name ]] || path=$folder/$name
		done
		[[ -n $path ]] || { echo "closure: $1 needs $name, which is not in any of these folders: ${folders[*]}" >&2; exit 1; }
		if [[ ! -e $root$path ]]; then
			install -D -m 755 "$path" "$root$path" # The file behind the link, under the name that is asked for.
			collect "$path"
		fi
	done
}

mkdir -p "$root"/{etc/ssl/certs,tmp,proc,dev}
chmod 1777 "$root/tmp"
install -m 755 "$program" "$root/bootstrap"
collect "$program"
[[ -z $loader ]] || install -D -m 755 "$loader" "$root$loader"

install -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
echo 'longbox:x:65532:65532::/tmp:/nonexistent' >"$root/etc/passwd"
echo 'longbox:x:65532:' >"$root/etc/group"
