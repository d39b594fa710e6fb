package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

const aws = "AWS"

// protocols are the suites whose behaviour AWS documents.
var protocols = []*suite{stores, queues, notices}

// document fills the column of AWS, which is not tested, with what AWS documents: full support.
func (t *table) document() {
	for _, r := range t.rows {
		if slices.Contains(protocols, r.suite) {
			r.outcomes[aws] = "yes"
		}
	}
}

func (t *table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, x := range []*suite{stores, queues, notices, books, setup} {
		var names []string
		for _, s := range services {
			if slices.Contains(s.suites, x) {
				names = append(names, s.name)
			}
		}
		heads := names
		if slices.Contains(protocols, x) {
			names, heads = append(slices.Clip(names), aws), append(slices.Clip(names), aws+" (documented)")
		}
		fmt.Fprintf(w, "%s\t%s\n", x.title, strings.Join(heads, "\t"))
		for _, r := range t.rows {
			if r.suite != x {
				continue
			}
			fmt.Fprint(w, r.test)
			for _, name := range names {
				outcome := r.outcomes[name]
				if outcome == "" {
					outcome = "not run"
				}
				fmt.Fprint(w, "\t"+outcome)
			}
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
