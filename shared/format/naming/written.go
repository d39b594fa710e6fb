package naming

import "strings"

// prepared is a normalised name with the changes from the original.
type prepared struct {
	text    string
	changes []change // in order
}

// change is a replaced part of the text: "0.5" for "½".
type change struct {
	at       span
	now, was string
}

// edit replaces a part of the text with by. remember records the original.
type edit struct {
	at       span
	by       string
	remember bool
}

// replace applies edits, which must be in order and must not overlap.
func (p *prepared) replace(edits []edit) {
	if len(edits) == 0 {
		return
	}
	var b strings.Builder
	var changes []change
	done, old := 0, p.changes
	upTo := func(end int) { // unchanged text
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

// written returns a part of a text as in the original name. text is the prepared text, possibly with blanked parts.
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
