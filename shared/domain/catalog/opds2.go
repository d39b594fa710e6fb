package catalog

import (
	"net/http"
	"strings"
	"time"

	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

const (
	opds2Root            = "/opds/v2"
	opds2Type            = "application/opds+json"
	opds2PublicationType = "application/opds-publication+json"
)

// opds2Feed is a feed of OPDS 2.0. At least one of its lists is present, possibly empty.
type opds2Feed struct {
	Metadata     opds2Metadata      `json:"metadata"`
	Links        []opds2Link        `json:"links"`
	Navigation   []opds2Link        `json:"navigation,omitzero"`
	Publications []opds2Publication `json:"publications,omitzero"`
	Groups       []opds2Feed        `json:"groups,omitzero"`
}

type opds2Metadata struct {
	Title        string `json:"title"`
	Modified     string `json:"modified,omitempty"`
	Items        *int64 `json:"numberOfItems,omitempty"`
	ItemsPerPage int    `json:"itemsPerPage,omitempty"`
	CurrentPage  int    `json:"currentPage,omitempty"`
}

type opds2Link struct {
	Href       string           `json:"href"`
	Rel        string           `json:"rel,omitempty"`
	Type       string           `json:"type,omitempty"`
	Title      string           `json:"title,omitempty"`
	Templated  bool             `json:"templated,omitempty"`
	Properties *opds2Properties `json:"properties,omitempty"`
}

type opds2Properties struct {
	Items int64 `json:"numberOfItems"`
}

// opds2Publication is a book (Readium Web Publication Manifest), with the caller's progress in a field of our own.
type opds2Publication struct {
	Metadata opds2Book      `json:"metadata"`
	Links    []opds2Link    `json:"links"`
	Images   []opds2Link    `json:"images"`
	Progress *opds2Progress `json:"readingProgress,omitempty"`
}

type opds2Book struct {
	Type       string        `json:"@type"`
	Title      string        `json:"title"`
	Identifier string        `json:"identifier"`
	Modified   string        `json:"modified"`
	Authors    []string      `json:"author,omitempty"`
	Publisher  string        `json:"publisher,omitempty"`
	Language   string        `json:"language,omitempty"`
	About      string        `json:"description,omitempty"`
	Pages      int32         `json:"numberOfPages,omitempty"`
	BelongsTo  opds2Belonged `json:"belongsTo"`
}

type opds2Belonged struct {
	Series opds2Series `json:"series"`
}

type opds2Series struct {
	Name     string   `json:"name"`
	Position *float64 `json:"position,omitempty"`
}

type opds2Progress struct {
	CurrentPage int32     `json:"currentPage"`
	TotalPages  int32     `json:"totalPages"`
	Percent     float64   `json:"progressPercent"`
	Completed   bool      `json:"isCompleted"`
	LastReadAt  time.Time `json:"lastReadAt"`
}

// writeOPDS2 writes a feed as OPDS 2.0.
func writeOPDS2(w http.ResponseWriter, f *feed) error {
	here := func(page int) string { return opds2Root + f.path + f.paging.at(page) }
	out := opds2Feed{Metadata: opds2Metadata{Title: f.title, Modified: date(f.updated())},
		Links: []opds2Link{{Href: here(f.paging.page), Rel: "self", Type: opds2Type}, {Href: opds2Root, Rel: "start", Type: opds2Type},
			{Href: opds2Root + "/search{?query}", Rel: "search", Type: opds2Type, Templated: true}}}
	if f.path != "" {
		out.Links = append(out.Links, opds2Link{Href: opds2Root + f.up, Rel: "up", Type: opds2Type})
	}
	if f.paging.size > 0 {
		out.Metadata.Items, out.Metadata.ItemsPerPage, out.Metadata.CurrentPage = &f.total, f.paging.size, f.paging.page
		out.Links = append(out.Links, opds2Link{Href: here(1), Rel: "first", Type: opds2Type})
		if f.paging.page > 1 {
			out.Links = append(out.Links, opds2Link{Href: here(min(f.paging.page-1, f.last())), Rel: "prev", Type: opds2Type})
		}
		if f.paging.page < f.last() {
			out.Links = append(out.Links, opds2Link{Href: here(f.paging.page + 1), Rel: "next", Type: opds2Type})
		}
		out.Links = append(out.Links, opds2Link{Href: here(f.last()), Rel: "last", Type: opds2Type})
	}
	navigation, books := []opds2Link{}, []opds2Publication{}
	for _, p := range f.places {
		navigation = append(navigation, opds2Link{Href: opds2Root + p.path, Rel: p.rel, Type: opds2Type, Title: p.title})
	}
	for _, l := range f.libraries {
		navigation = append(navigation, opds2Link{Href: opds2Root + "/libraries/" + l.ID.String(), Rel: relSubsection, Type: opds2Type, Title: l.Name,
			Properties: &opds2Properties{l.Series}})
	}
	for _, l := range f.lists {
		navigation = append(navigation, opds2Link{Href: opds2Root + l.kind.path + "/" + l.ID.String(), Rel: relSubsection, Type: opds2Type, Title: l.Name})
	}
	for _, s := range f.series {
		navigation = append(navigation, opds2Link{Href: opds2Root + "/series/" + s.ID.String(), Rel: relSubsection, Type: opds2Type, Title: s.Title, Properties: &opds2Properties{s.Books}})
	}
	for _, p := range f.books {
		books = append(books, p.opds2())
	}
	switch {
	case f.found: // both kinds, in groups
		out.Groups = []opds2Feed{}
		for _, g := range []opds2Feed{{Metadata: opds2Metadata{Title: "Series"}, Navigation: navigation}, {Metadata: opds2Metadata{Title: "Books"}, Publications: books}} {
			if n := int64(len(g.Navigation) + len(g.Publications)); n > 0 {
				path := f.path + "/" + strings.ToLower(g.Metadata.Title)
				g.Metadata.Items, g.Links = &n, []opds2Link{{Href: opds2Root + path + f.paging.at(f.paging.page), Rel: "self", Type: opds2Type}}
				out.Groups = append(out.Groups, g)
			}
		}
	case f.reads:
		out.Publications = books
	default:
		out.Navigation = navigation
	}
	return httpapi.WriteDocument(w, opds2Type+";charset=utf-8", out)
}

func (p publication) opds2() opds2Publication {
	out := opds2Publication{
		Metadata: opds2Book{Type: "http://schema.org/Book", Title: p.Title, Identifier: urn(p.ID), Modified: date(p.UpdatedAt), Publisher: value(p.Publisher),
			Language: value(p.Language), About: value(p.Summary), Authors: p.names(), Pages: p.Pages, BelongsTo: opds2Belonged{opds2Series{p.Series, p.Number}}},
		Links: []opds2Link{{Href: opds2Root + "/books/" + p.ID.String(), Rel: "self", Type: opds2PublicationType},
			{Href: p.file(), Rel: relAcquisition + "/open-access", Type: mediatype.OfBook(p.Format)}},
		Images: []opds2Link{{Href: p.cover(), Type: "image/jpeg"}},
	}
	if p.CurrentPage != nil {
		out.Progress = &opds2Progress{CurrentPage: *p.CurrentPage, TotalPages: p.Pages, Completed: *p.Completed, LastReadAt: *p.ReadAt}
		if p.Percentage != nil {
			out.Progress.Percent = *p.Percentage * 100
		}
	}
	return out
}
