package naming

import "strings"

// prepared is a name in the form that is read, and what of it was written otherwise.
type prepared struct {
	text    string
	changes []change // in their order
}

// change is a part of the text that stands for other letters or digits: "0.5" for "½".
type change struct {
	at       span
	now, was string
}

// edit puts by in place of a part of the text, and remembers what stood there.
type edit struct {
	at       span
	by       string
	remember bool
}

// replace does edits that are in order and do not overlap.
func (p *prepared) replace(edits []edit) {
	if len(edits) == 0 {
		return
	}
	var b strings.Builder
	var changes []change
	done, old := 0, p.changes
	upTo := func(end int) { // what stays
		for len(old) > 0 && old[0].at.to <= end {
			c := old[0]
			shift := b.Len() - done
			c.at = span{c.at.from + shift, c.at.to + shift}
			changes, old = append(changes, c), old[1:]
		}
		b.WriteString(p.text[done:end])
		done = end
	}
	for _, e := range edits {
		upTo(e.at.from)
		was, within := written(old, p.text, e.at), false
		for len(old) > 0 && old[0].at.from < e.at.to {
			old, within = old[1:], true
		}
		if e.remember || within {
			changes = append(changes, change{span{b.Len(), b.Len() + len(e.by)}, e.by, was})
		}
		b.WriteString(e.by)
		done = e.at.to
	}
	upTo(len(p.text))
	p.text, p.changes = b.String(), changes
}

// written is a part of a text as the name has it. The text is the prepared one, where parts may have become blank.
func written(changes []change, text string, part span) string {
	var b strings.Builder
	from := part.from
	for _, c := range changes {
		if c.at.from >= part.to {
			break
		}
		if c.at.from >= from && c.at.to <= part.to && text[c.at.from:c.at.to] == c.now {
			b.WriteString(text[from:c.at.from])
			b.WriteString(c.was)
			from = c.at.to
		}
	}
	b.WriteString(text[from:part.to])
	return b.String()
}
