#!/usr/bin/env bash
# Makes this machine ready for one of the make targets: installs what is missing, and nothing twice.
#
#   prepare.sh run    packages, the S3 gateway, and the binaries in .bin
#   prepare.sh packages  packages to run with
#   prepare.sh test   packages (also pgbouncer and nginx) and the S3 gateway; tools is the same
#   prepare.sh build  packages to compile with
#   prepare.sh conformance  as test, MinIO, and LocalStack in a Python environment of its own
#   prepare.sh lint   packages to compile with, and staticcheck
#   prepare.sh infra  the linter and the translator of the cloud templates, in a Python environment of their own
#
# Packages come from the distribution. Their services are neither started nor enabled, and no system-wide PostgreSQL
# cluster is made: Longbox runs servers of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

versitygw=v1.8.0
staticcheck=v0.8.2
minio=v0.0.0-20260212201848-7aac2a2c5b7c
cfnlint=1.58.0
translator=1.115.0

# Started as root, what is built here runs as another user, whatever root's own files are like.
umask 022

target=${1:-}
tools=$PWD/.tools
log=$tools/install.log

say() { echo "Longbox: $*"; }
fail() {
	echo "Longbox: $*" >&2
	exit 1
}

mkdir -p "$tools/bin" "$tools/version" 2>/dev/null && : 2>/dev/null >>"$tools/lock" ||
	fail "user $(id -un) may not write to $tools: start as the user who owns the clone, or make this user its owner, as root: chown -R $(id -un): $PWD"

# What root has made in the clone of another user is theirs, also where something fails: they add to it, and build it anew.
hand_over() { ((EUID != 0)) || [[ -O . ]] || chown -hR --reference=. "$tools" $(compgen -G .bin); }
trap hand_over EXIT

# step <what> <command...> runs a long command with its output in the log, and says every 15 s how far it is.
step() {
	local what=$1 waited=0 line
	shift
	"$@" >"$log" 2>&1 9>&- &
	running=$!
	while kill -0 "$running" 2>/dev/null; do
		sleep 0.2
		waited=$((waited + 1))
		if ((waited % 75 == 0)); then
			line=$(tail -n 1 "$log" | tr -d '\r' | cut -c1-100)
			say "$what, $((waited / 5)) s${line:+: $line}"
		fi
	done
	wait "$running"
}

# last is the line of the log that names the problem.
last() { { grep -v '^go: downloading ' "$log" | grep -E '^(E:|dpkg: error|go: |.*error)' || tail -n 1 "$log"; } | tail -n 1 | cut -c1-300; }

# room <GB> <folder...> says which folders are on a disk that is nearly full, or has few inodes left (0 in all: it has no
# fixed number). Otherwise that shows as failures of many kinds.
room() {
	local gb=$1 folder free
	shift
	for folder; do
		[[ -e $folder ]] || folder=$(dirname "$folder")
		free=$(df -Pk "$folder" 2>/dev/null | awk 'NR == 2 { print $4 }') || free=
		[[ -z $free ]] || ((free >= gb << 20)) || say "less than $gb GB is free on the disk of $folder, which may not be enough"
		free=$(df -Pi "$folder" 2>/dev/null | awk 'NR == 2 && $2 > 0 { print $4 }') || free=
		[[ -z $free ]] || ((free >= 100000)) || say "the disk of $folder has room for only $free more files (inodes, see df -i), which may not be enough"
	done
}

# --- Debian packages -------------------------------------------------------------------------------------------------

missing=()
# need <package> <command...> notes a package unless what it brings is there, wherever it came from.
need() {
	local package=$1
	shift
	"$@" >/dev/null 2>&1 || missing+=("$package")
}
some() { compgen -G "$1"; }

need_compiler() {
	need ca-certificates test -s /etc/ssl/certs/ca-certificates.crt
	need gcc command -v gcc
	need libc6-dev test -e /usr/include/stdio.h
	need pkg-config command -v pkg-config
	need libvips-dev some '/usr/lib/*/pkgconfig/vips.pc'
}
need_servers() {
	need postgresql some '/usr/lib/postgresql/*/bin/initdb'
	need redis-server command -v redis-server
	need fonts-droid-fallback test -e /usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf
}

# keep marks the servers of PostgreSQL as installed by hand. After an upgrade of the system the package postgresql brings
# a newer one, and apt-get autoremove would remove the one that opens the database.
keep="apt-mark manual \$(dpkg -S '/usr/lib/postgresql/*/bin/initdb' | cut -d: -f1)"

install_packages() {
	((${#missing[@]})) || return 0
	local command="apt-get install -y --no-install-recommends ${missing[*]}" then=
	[[ " ${missing[*]} " != *" postgresql "* ]] || then=" && $keep"
	if ((EUID != 0)); then
		local missed="apt-get update && $command$then"
		# Only this keeps the services of the servers from being started.
		[[ $target != @(run|packages) ]] || missed="make -C $(printf %q "$PWD") packages"
		fail "these packages are missing; as root, run: $missed"
	fi
	command -v apt-get >/dev/null || fail "this machine has no apt-get: install these packages by hand (names in Debian): ${missing[*]}"
	say "installing Debian packages (a few minutes, once): ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	step "reading package lists" apt-get update -q -o Acquire::Retries=3 || say "package lists may be out of date: $(last)"
	hold_services
	step "installing packages" apt-get -q -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 ${command#apt-get } ||
		fail "packages cannot be installed ($(last)): check the network and /etc/apt, then run: apt-get update && $command$then"
	[[ -z $then ]] || bash -c "$keep" >>"$log" 2>&1 || say "PostgreSQL could not be kept from apt-get autoremove: $(tail -n 1 "$log")"
	local package
	for package in redis-server pgbouncer nginx; do # Not at the next boot either.
		if [[ " ${missing[*]} " == *" $package "* ]] && command -v update-rc.d >/dev/null; then
			update-rc.d "$package" disable >>"$log" 2>&1 || say "the service $package could not be disabled: $(tail -n 1 "$log")"
		fi
	done
	release_services
}

policy=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.d/longbox.conf

# While packages are installed, Debian may start no service and make no cluster. Both files go again afterwards.
hold_services() {
	trap 'release_services; hand_over' EXIT
	trap interrupted INT TERM HUP
	# One of our own that was left by a loss of power is no one's to put back.
	if [[ -e $policy && ! -e $policy.longbox ]] && ! grep -q 'Written by Longbox' "$policy"; then
		mv "$policy" "$policy.longbox"
	fi
	printf '#!/bin/sh\n# Written by Longbox while it installs packages.\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	mkdir -p "$(dirname "$cluster")"
	echo 'create_main_cluster = false' >"$cluster"
}
# The installation goes on behind a Ctrl-C (bash starts background commands deaf to it), and may start no service then either.
interrupted() {
	trap '' INT TERM HUP
	say "stopping once the packages are installed"
	wait "$running" || true
	exit 130
}
release_services() {
	rm -f "$policy" "$cluster"
	if [[ -e $policy.longbox ]]; then
		mv "$policy.longbox" "$policy"
	fi
	rmdir --ignore-fail-on-non-empty "$(dirname "$cluster")" 2>/dev/null || true
	trap hand_over EXIT
	trap - INT TERM HUP
}

# --- Go tools --------------------------------------------------------------------------------------------------------

# check_go refuses a Go older than go.mod asks for, unless it may fetch a newer one, as Go 1.21 and later do by default.
# Otherwise that shows as a failed installation of a tool, after the packages were installed.
check_go() {
	command -v go >/dev/null || fail "no Go found: install Go 1.26 or newer from https://go.dev/dl and put its bin folder on the PATH"
	[[ $(GOTOOLCHAIN=local go version) =~ go([0-9]+\.[0-9]+(\.[0-9]+)?) ]] || return 0
	local version=${BASH_REMATCH[1]} needed
	needed=$(sed -n 's/^go //p' go.mod)
	at_least "$version" "$needed" || { at_least "$version" 1.21 && [[ $(cd / && go env GOTOOLCHAIN) != local ]]; } ||
		fail "Go $version is too old: install Go $needed or newer from https://go.dev/dl and put its bin folder first on the PATH"
}
at_least() { printf '%s\n' "$2" "$1" | sort -VC; }

# tool <name> <module path of the command> <version>
tool() {
	local name=$1 path=$2 version=$3
	if [[ -x $tools/bin/$name && $(cat "$tools/version/$name" 2>/dev/null) == "$version" ]]; then
		return 0
	fi
	say "building $name $version (a minute or two, once)"
	step "building $name" env GOBIN="$tools/bin" GOFLAGS=-trimpath CGO_ENABLED=0 go install -v -ldflags='-s -w' "$path@$version" ||
		fail "$name $version cannot be installed ($(last)): check that the Go module proxy can be reached ($(go env GOPROXY))"
	echo "$version" >"$tools/version/$name"
}

# --- Python tools ----------------------------------------------------------------------------------------------------

# python <name> <version> <pip's arguments> makes the environment .tools/<name> with the packages, of wheels only: nothing
# is compiled, and no package's own script runs.
python() {
	local name=$1 version=$2
	shift 2
	if [[ -x $tools/$name/bin/python && $(cat "$tools/version/$name" 2>/dev/null) == "$version" ]]; then
		return 0
	fi
	say "installing $name (a minute or two, once)"
	rm -rf "${tools:?}/$name"
	step "creating a Python environment" "${PYTHON:-python3}" -m venv "$tools/$name" || fail "cannot create a Python environment ($(last))"
	step "installing $name" "$tools/$name/bin/pip" install --disable-pip-version-check --no-input --only-binary :all: "$@" ||
		fail "$name cannot be installed ($(last)): check that the Python package index can be reached (pip config list)"
	echo "$version" >"$tools/version/$name"
}

install_cfnlint() {
	python cfn-lint "cfn-lint $cfnlint aws-sam-translator $translator" "cfn-lint==$cfnlint" "aws-sam-translator==$translator"
}

install_localstack() {
	"${PYTHON:-python3}" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
		fail "LocalStack needs Python 3.11 or newer: set PYTHON to its command"
	local list=localstack/conformance/requirements.txt
	python localstack "$(sha256sum <"$list")" --no-deps -r "$list"
}

# ---------------------------------------------------------------------------------------------------------------------

# One at a time: two would write over each other's log, and over what they build.
exec 9>"$tools/lock"
flock -n 9 || { say "another make is preparing this clone: waiting for it" && flock 9; }

[[ $target == packages ]] || check_go

case $target in
run)
	room 1 "${DATA_DIR:-.data}"
	need_compiler
	need_servers
	install_packages
	tool versitygw github.com/versity/versitygw/cmd/versitygw "$versitygw"
	[[ -x .bin/localstack ]] || say "building Longbox (a few minutes, once)"
	mkdir -p .bin
	stamp=() # Git tells root nothing of another user's clone, and Go does not build then: without the commit it does.
	git rev-parse --git-dir >/dev/null 2>&1 || stamp=(-buildvcs=false)
	step "building" go build "${stamp[@]}" -v -o .bin/ ./functions/{api,media,worker,scheduler,plugin,migrate,operator} ./sse-relay ./localstack || {
		grep -v '^[^ :]*$' "$log" >&2 || true # Without the names of what was built well.
		fail "the build failed; the lines above say where"
	}
	((EUID != 0)) || chmod a+rx .bin/* "$tools/bin/versitygw" # also those that were built otherwise, and are not built again
	;;
packages)
	need_compiler
	need_servers
	install_packages
	;;
test | tools)
	room 5 "${TMPDIR:-/tmp}" "$(go env GOCACHE)"
	need_compiler
	need_servers
	need pgbouncer command -v pgbouncer
	need nginx test -x /usr/sbin/nginx
	install_packages
	tool versitygw github.com/versity/versitygw/cmd/versitygw "$versitygw"
	;;
conformance)
	need_compiler
	need_servers
	need nginx test -x /usr/sbin/nginx
	need python3-venv python3 -c 'import ensurepip'
	install_packages
	tool versitygw github.com/versity/versitygw/cmd/versitygw "$versitygw"
	tool minio github.com/minio/minio "$minio"
	install_localstack
	;;
build)
	need_compiler
	install_packages
	;;
lint)
	need_compiler
	install_packages
	tool staticcheck honnef.co/go/tools/cmd/staticcheck "$staticcheck"
	;;
infra)
	need python3-venv python3 -c 'import ensurepip'
	install_packages
	install_cfnlint
	;;
*)
	fail "usage: prepare.sh run|packages|test|tools|conformance|build|lint|infra"
	;;
esac
