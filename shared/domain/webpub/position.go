package webpub

import (
	"net/http"

	"github.com/longbox/longbox/shared/format/epub"
)

// positions are the positions of a book in order (https://readium.org/architecture/models/locators/positions/).
type positions struct {
	Total     int        `json:"total"`
	Positions []position `json:"positions"`
}

type position struct {
	Href      string    `json:"href"`
	Type      string    `json:"type"`
	Locations locations `json:"locations"`
}

type locations struct {
	Position int     `json:"position"`         // from 1
	Document float64 `json:"progression"`      // where it begins in its document, from 0 to 1
	Book     float64 `json:"totalProgression"` // where it begins in the whole book
}

const (
	positionBytes = 1024   // compressed bytes of a document per position
	maxPositions  = 20_000 // per book; beyond that, positions get longer
)

func (b *book) positions(r *http.Request) (*positions, error) {
	if b.isEPUB() {
		c, err := b.server.Contents(r, b.index)
		if err != nil {
			return nil, err
		}
		return b.positionsOf(c.Spine)
	}
	if _, err := b.index.Entry(1); err != nil {
		return nil, err
	}
	out := &positions{}
	for n, kind := range b.index.Types {
		out.add(b.page(n+1), kind, 0)
	}
	return out.numbered(), nil
}

func (b *book) positionsOf(spine []epub.Item) (*positions, error) {
	out := &positions{Positions: []position{}}
	step := stepOf(spine)
	for _, it := range spine {
		href, n := b.file(it.Entry.Name), placesOf(it, step)
		if !b.count(position{Href: href, Type: it.MediaType}, n) {
			return nil, errTooLarge
		}
		for k := range n {
			out.add(href, it.MediaType, float64(k)/float64(n))
		}
	}
	return out.numbered(), nil
}

// numbered fills in what depends on the number of positions.
func (p *positions) numbered() *positions {
	p.Total = len(p.Positions)
	for n := range p.Positions {
		p.Positions[n].Locations.Book = float64(n) / float64(p.Total)
	}
	return p
}

func (p *positions) add(href, kind string, progression float64) {
	p.Positions = append(p.Positions, position{href, kind, locations{Position: len(p.Positions) + 1, Document: progression}})
}

// stepOf returns the bytes of documents per position.
func stepOf(spine []epub.Item) int64 {
	total := int64(0)
	for _, it := range spine {
		total += it.Entry.CompressedSize
	}
	return max(positionBytes, total/maxPositions)
}

// placesOf returns the number of positions of a document; a fixed-layout page has one.
func placesOf(it epub.Item, step int64) int {
	if it.PrePaginated {
		return 1
	}
	return int(max(1, (it.Entry.CompressedSize+step-1)/step))
}
