// Command cost computes the cost of an installation from three files beside it: prices.json (list prices with source
// and date), counters.json (the use of each operation, measured by go run ./bench cost) and assumed.json (values that
// cannot be measured on one machine, with reasons). It prints the table of docs/cost.md and checks the bars.
//
//	go run ./infra/cost           print
//	go run ./infra/cost -write    print and write it to docs/cost.md
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	write := flag.Bool("write", false, "put the table into docs/cost.md")
	flag.Parse()
	text, failed, err := table(".")
	if err == nil {
		fmt.Print(text)
		if *write {
			err = update("docs/cost.md", text)
		}
	}
	if err == nil && failed {
		err = errors.New("a cost is above its limit")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func dollars(v float64) string {
	if v != 0 && v < 0.1 {
		return fmt.Sprintf("$%.3f", v)
	}
	return fmt.Sprintf("$%.2f", v)
}

// bar is a cost and its limit, in dollars.
type bar struct {
	what     string
	is, most float64
}

func (m *model) bars() []bar {
	cold, warm, scan := m.cold(), m.warm(), m.scan()
	return []bar{
		{"Lambda and S3 of a million cold original pages", cold.of("Lambda", "S3"), 1.2},
		{"Lambda and S3 of a million pages that the CDN has (zero, to the cent)", warm.of("Lambda", "S3"), 0.005},
		{"first scan of 100,000 books with covers: Lambda, S3, SQS", scan.of("Lambda", "S3", "SQS"), 0.8},
	}
}

// table is the generated part of docs/cost.md.
func table(root string) (text string, failed bool, err error) {
	var b strings.Builder
	var models []*model
	for _, size := range []string{"small", "large"} {
		m, err := load(root, size)
		if err != nil {
			return "", false, err
		}
		models = append(models, m)
	}
	b.WriteString("| | small | large | of it, small |\n|---|--:|--:|---|\n")
	for _, row := range []struct {
		what string
		of   func(*model) cost
	}{
		{"a month in which nobody reads", func(m *model) cost { return m.idle(true) }},
		{"the same with `Schedule=rate(1 hour)`", func(m *model) cost { return m.idle(false) }},
		{"a month of 1,000 readers, all in all", (*model).readers},
		{"1,000,000 page views: originals that no cache has", (*model).cold},
		{"… rendered in another size for the first time", (*model).coldRender},
		{"… from the CDN, each asked for at media first", (*model).redirected},
		{"… from the CDN, by addresses given for whole books", (*model).warm},
		{"bytes of 1,000,000 page views, besides", (*model).egress},
		{"first scan of 100,000 books with covers", (*model).scan},
	} {
		small, large := row.of(models[0]), row.of(models[1])
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", row.what, dollars(small.of()), dollars(large.of()), small.breakdown())
	}
	b.WriteString("\n| Bar | is | at most | |\n|---|--:|--:|---|\n")
	m := models[0]
	for _, l := range m.bars() {
		verdict := "PASS"
		if l.is > l.most {
			verdict, failed = "FAIL", true
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", l.what, dollars(l.is), dollars(l.most), verdict)
	}
	fmt.Fprintf(&b, "\nPrices: %s. Counters: %s:\n\n", m.source, m.date)
	b.WriteString("| One | GET | PUT | LIST | processor ms | Postgres round trips | Postgres ms | takes, small |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, row := range []struct{ name, what, memory string }{
		{"original", "original page", "MediaMemory"}, {"render", "page rendered, first time", "RenderMemory"},
		{"renderAgain", "page rendered, second time", "RenderMemory"}, {"stored", "page that is stored", "RenderMemory"},
		{"book", "book scanned, cover included", "WorkerMemory"}, {"list", "list of 50 books", "ApiMemory"},
	} {
		u, megabytes := m.measured(row.name), m.number(row.memory)
		if row.name == "original" {
			u = m.original()
		}
		takes := "-"
		if row.name != "book" {
			takes = fmt.Sprintf("%.0f ms of %.0f MB", m.milliseconds(u, megabytes, row.name != "list"), megabytes)
		}
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.3f | %.2f | %.2f | %.2f | %s |\n", row.what, u.Gets, u.Puts, u.Lists, u.CPU, u.Trips, u.DatabaseMs, takes)
	}
	return b.String(), failed, nil
}

const begin, end = "<!-- written by go run ./infra/cost -write -->\n\n", "\n<!-- end -->"

// update replaces the text between the marks in the file.
func update(path, text string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok1 := strings.Cut(string(raw), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return fmt.Errorf("%s lacks the marks %q and %q", path, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(path, []byte(before+begin+text+end+after), 0o644)
}
