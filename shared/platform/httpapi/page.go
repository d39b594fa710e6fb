package httpapi

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"
)

// Paging is the paging query of a list.
type Paging struct {
	Page     int `query:"page" default:"1" minimum:"1" maximum:"9007199254740991" doc:"Page number, starting at 1"`
	PageSize int `query:"pageSize" default:"50" minimum:"0" doc:"Items per page; 0 means 50, values above 500 mean 500"`
}

// maxLink limits the Link header, which contains the query five times: a proxy refuses a response with a longer one.
// The body also has the links.
const maxLink = 4 << 10

// Page sizes.
const (
	defaultPageSize = 50
	MaxPageSize     = 500
)

// Limit returns the page size, at most MaxPageSize.
func (p Paging) Limit() int { return min(cmp.Or(p.PageSize, defaultPageSize), MaxPageSize) }

// Offset returns the number of items before the page.
func (p Paging) Offset() int { return (p.Page - 1) * p.Limit() }

// Page is the envelope of every list.
type Page[T any] struct {
	Data       []T   `json:"data" nullable:"false"`
	Page       int64 `json:"page" minimum:"1"`
	PageSize   int64 `json:"pageSize" minimum:"1"`
	Total      int64 `json:"total" minimum:"0"`
	TotalPages int64 `json:"totalPages" minimum:"0"`
	Links      Links `json:"links"`
}

// Links are relative and include the query of the request.
type Links struct {
	Self  string  `json:"self"`
	First string  `json:"first"`
	Last  string  `json:"last"`
	Prev  *string `json:"prev" nullable:"true"`
	Next  *string `json:"next" nullable:"true"`
}

// NewPage makes the envelope and sets the Link header (RFC 8288).
func NewPage[T any](ctx context.Context, p Paging, data []T, total int64) *Page[T] {
	if data == nil {
		data = []T{}
	}
	size := int64(p.Limit())
	out := &Page[T]{Data: data, Page: int64(p.Page), PageSize: size, Total: total, TotalPages: (total + size - 1) / size}
	r := requestOf(ctx)
	query := r.url.Query()
	for _, k := range []string{"page", "pageSize", "page_size"} {
		query.Del(k)
	}
	rest := query.Encode()
	link := func(n int64) string { return pageLink(r.url, n, size, rest) }
	out.Links = Links{Self: link(out.Page), First: link(1), Last: link(max(1, out.TotalPages))}
	header := []string{`<` + out.Links.First + `>; rel="first"`}
	if out.Page > 1 {
		prev := link(min(out.Page-1, max(1, out.TotalPages)))
		out.Links.Prev = &prev
		header = append(header, `<`+prev+`>; rel="prev"`)
	}
	header = append(header, `<`+out.Links.Self+`>; rel="self"`)
	if out.Page < out.TotalPages {
		next := link(out.Page + 1)
		out.Links.Next = &next
		header = append(header, `<`+next+`>; rel="next"`)
	}
	header = append(header, `<`+out.Links.Last+`>; rel="last"`)
	if value := strings.Join(header, ", "); len(value) <= maxLink {
		r.header.Set("Link", value)
	}
	return out
}

// All returns the envelope of a list that is completely in memory. It cuts the page out of items.
func All[T any](ctx context.Context, p Paging, items []T) *Page[T] {
	from := min(p.Offset(), len(items))
	to := min(from+p.Limit(), len(items))
	return NewPage(ctx, p, items[from:to], int64(len(items)))
}

func pageLink(u *url.URL, page, size int64, rest string) string {
	q := "?page=" + strconv.FormatInt(page, 10) + "&pageSize=" + strconv.FormatInt(size, 10)
	if rest != "" {
		q += "&" + rest
	}
	return u.EscapedPath() + q
}
