package plugin

import (
	"encoding/json"
	"reflect"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// The statuses of a field in a preview.
const (
	willApply    = "will_apply"
	locked       = "locked"
	noPermission = "no_permission"
	unchanged    = "unchanged"
	notProvided  = "not_provided"
)

// FieldPreview says what applying would do to a field.
type FieldPreview struct {
	Field         string  `json:"field"`
	CurrentValue  any     `json:"currentValue"`
	ProposedValue any     `json:"proposedValue"`
	Status        string  `json:"status" enum:"will_apply,locked,no_permission,unchanged,not_provided"`
	Reason        *string `json:"reason"`

	write func() // adds the proposed value to what is written
}

// proposals collects all fields that a plugin may set.
type proposals struct {
	plugin *Plugin
	locks  map[string]bool
	suffix string // suffix of lock names
	fields []FieldPreview
}

// field names a field that a plugin may set, the permission to set it, and its lock, "" if there is none.
type field struct{ name, permission, lock string }

// fieldNamed is a field whose permission and lock have its name.
func fieldNamed(name string) field { return field{name, name, name} }

// add adds a field with its current and proposed value. proposed is nil if nothing is usable; then reason says why, if
// the plugin sent something.
func (p *proposals) add(of field, current, proposed any, reason string, write func()) {
	f := FieldPreview{Field: of.name, CurrentValue: plain(current), ProposedValue: plain(proposed), write: write}
	switch {
	case isEmpty(f.ProposedValue):
		f.Status = notProvided
	case reflect.DeepEqual(f.CurrentValue, f.ProposedValue):
		f.Status = unchanged
	case !p.plugin.mayWrite(of.permission):
		f.Status, reason = noPermission, "The plugin does not have the permission "+writing+of.permission
	case of.lock != "" && p.locks[of.lock+p.suffix]:
		f.Status, reason = locked, "The field is locked"
	default:
		f.Status = willApply
	}
	if reason != "" {
		f.Reason = &reason
	}
	p.fields = append(p.fields, f)
}

// addTo is add for a field of a body.
func addTo[T any](p *proposals, of field, current, proposed *T, reason string, into *httpapi.Optional[T]) {
	p.add(of, current, proposed, reason, func() { *into = set(proposed) })
}

// set returns a field that is present in a body.
func set[T any](v *T) httpapi.Optional[T] { return httpapi.Optional[T]{Set: true, Value: v} }

func (p *proposals) text(of field, current, said *string, most int, into *httpapi.Optional[string]) {
	text, why := line(said, most)
	addTo(p, of, current, text, why, into)
}

func (p *proposals) whole(of field, current *int32, said *float64, from, to int32, into *httpapi.Optional[int32]) {
	n, why := whole(said, from, to)
	addTo(p, of, current, n, why, into)
}

func (p *proposals) fraction(of field, current, said *float64, into *httpapi.Optional[float64]) {
	n, why := fraction(said)
	addTo(p, of, current, n, why, into)
}

func (p *proposals) among(of field, current, said *string, some []string, into *httpapi.Optional[string]) {
	word, why := among(said, some...)
	addTo(p, of, current, word, why, into)
}

func (p *proposals) language(of field, current, said *string, into *httpapi.Optional[string]) {
	tag, why := tongue(said)
	addTo(p, of, current, tag, why, into)
}

// terms adds genres or tags.
func (p *proposals) terms(name string, current []book.Term, said []string, most int, into *[]string) {
	list, now := names(said, most, 100), termNames(current)
	p.add(fieldNamed(name), now, spelled(list, now), lost(len(said), len(list)), func() { *into = list })
}

// services adds links and ids.
func (p *proposals) services(m *common, currentLinks []reference.Link, currentIDs []reference.ExternalID, into *reference.Given) {
	links, linked := m.links(), linksOf(currentLinks)
	why := lost(len(m.Links), len(links))
	p.add(field{"externalLinks", "links", ""}, linked, within(links, linked), why, func() { into.Links = links })
	ids, known := m.ids(), idsOf(currentIDs)
	p.add(field{"externalIds", "external_ids", ""}, known, within(ids, known), "", func() { into.IDs = ids })
}

// cover adds the cover; into receives its URL. A locked cover still stores the picture, but keeps showing the old one.
func (p *proposals) cover(said, into *string) {
	address, why := outward(said), ""
	if said != nil && *said != "" && address == nil {
		why = unusable
	}
	p.add(field{"cover", "covers", ""}, nil, address, why, func() { *into = *address })
}

// plain converts a value to its JSON form, so that two can be compared.
func plain(v any) (out any) {
	data, err := json.Marshal(v)
	if err != nil || json.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
}

// isEmpty reports whether a value from plain is null or an empty list.
func isEmpty(v any) bool {
	if list, ok := v.([]any); ok {
		return len(list) == 0
	}
	return v == nil
}

// linksOf returns links in the form of user input.
func linksOf(all []reference.Link) []reference.LinkBody {
	out := []reference.LinkBody{}
	for _, l := range all {
		out = append(out, reference.LinkBody{SourceName: l.SourceName, URL: l.URL})
	}
	return out
}

// idsOf returns ids in the form of user input, without their links.
func idsOf(all []reference.ExternalID) []reference.IDBody {
	out := []reference.IDBody{}
	for _, i := range all {
		out = append(out, reference.IDBody{Source: i.Source, ExternalID: i.ExternalID})
	}
	return out
}

// within returns current if it contains the whole list, else the list.
func within[T any](list, current []T) []T {
	known := map[string]bool{}
	for _, v := range current {
		known[written(v)] = true
	}
	for _, v := range list {
		if !known[written(v)] {
			return list
		}
	}
	if len(list) == 0 {
		return nil
	}
	return current
}

// written returns a value as JSON.
func written(v any) string {
	data, _ := json.Marshal(v) // cannot fail for texts and numbers
	return string(data)
}
