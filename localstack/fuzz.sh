#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other, each for the time given (30s), and says in the end which failed. An input
# that reaches new code is made smaller in at most 100 attempts: by default go test takes a minute for each, all of the time given.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
time=${1:-30s}
count=0
failed=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT
while IFS=: read -r file target; do
	echo "== $target in $(dirname "$file")"
	count=$((count + 1))
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 100x "./$(dirname "$file")" 2>&1 | tee "$log" && continue
	# At the end of its time go test now and then fails for that alone, without an input.
	if grep -q '^ *context deadline exceeded$' "$log" && ! grep -q 'Failing input written' "$log"; then
		echo "$target reached its time limit, which is not a failure"
		continue
	fi
	failed+=("$target")
done < <(grep -rEo --include='*_test.go' --exclude-dir='.?*' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's#^\./##; s/:func /:/' | sort)
((count > 0)) || { echo "no fuzz target was found" >&2; exit 1; }
echo "$count fuzz targets ran for $time each, failed: ${failed[*]:-none}"
((${#failed[@]} == 0))
