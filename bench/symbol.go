package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// bySymbol sums the sizes that `go tool nm -size` lists, without symbols that take no space in the file.
func bySymbol(nm string) map[string]int {
	sum := map[string]int{}
	for line := range strings.Lines(nm) {
		f := strings.Fields(line)
		if len(f) < 4 || strings.ContainsAny(f[2], "bBU") || f[3] == "crypto/internal/fips140/drbg.memory" {
			continue
		}
		size, err := strconv.Atoi(f[1])
		if err != nil {
			continue // a symbol without size
		}
		sum[owner(f[3])] += size
	}
	return sum
}

// owner returns the module of a symbol, or the first part of its standard library package.
func owner(symbol string) string {
	symbol = strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(symbol, "type:"), "go:itab."), "*")
	symbol, _, _ = strings.Cut(symbol, "[")
	symbol, _, _ = strings.Cut(symbol, "(")
	slash := strings.LastIndex(symbol, "/")
	if dot := strings.Index(symbol[slash+1:], "."); dot > 0 {
		symbol = symbol[:slash+1+dot]
	}
	parts := strings.Split(symbol, "/")
	if parts[0] == "vendor" || !strings.Contains(parts[0], ".") {
		if parts[0] == "go:func" || parts[0] == "type:" || strings.HasPrefix(symbol, ".") {
			return "linker's tables"
		}
		return "standard library"
	}
	return strings.Join(parts[:min(4, len(parts))], "/")
}

type share struct {
	name  string
	bytes int
}

// above returns the shares by which now exceeds base, the largest first. The rest is one share.
func above(now, base map[string]int, n int) []share {
	var all []share
	for name, size := range now {
		if more := size - base[name]; more > 0 {
			all = append(all, share{name, more})
		}
	}
	slices.SortFunc(all, func(a, b share) int { return cmp.Compare(b.bytes, a.bytes) })
	rest := share{name: "everything else"}
	for len(all) > n {
		rest.bytes += all[len(all)-1].bytes
		all = all[:len(all)-1]
	}
	return append(all, rest)
}
