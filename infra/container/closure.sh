#!/usr/bin/env bash
# Collects what a program needs to run into an empty folder that becomes the image: itself, the shared libraries it is
# linked with and their loader, certificates, a user. No shell, no package manager.
#
#   closure.sh PROGRAM FOLDER
set -euo pipefail
program=${1:?usage: closure.sh PROGRAM FOLDER}
root=${2:?usage: closure.sh PROGRAM FOLDER}

mkdir -p "$root"/{etc/ssl/certs,tmp,proc,dev}
chmod 1777 "$root/tmp"
install -m 755 "$program" "$root/bootstrap"

if ldd "$program" >/dev/null 2>&1; then # A static program needs nothing.
	missing=$(ldd "$program" | grep 'not found' || true)
	[[ -z $missing ]] || { echo "closure: $program lacks $missing" >&2; exit 1; }
	# "name => path (address)", and the loader as "path (address)" alone.
	ldd "$program" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' | sort -u | while read -r library; do
		install -D -m 755 "$library" "$root$library" # The file behind the link, under the name that is asked for.
	done
fi

install -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
echo 'longbox:x:65532:65532::/tmp:/nonexistent' >"$root/etc/passwd"
echo 'longbox:x:65532:' >"$root/etc/group"
