package komga

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// At is the prefix of an operation's path.
type At struct {
	Prefix string `path:"prefix" doc:"Value of the setting komga_api.prefix"`
}

// Paging holds the query parameters of a list.
type Paging struct {
	Page    int      `query:"page" default:"0" minimum:"0" maximum:"9007199254740991" doc:"Page number, starting at 0"`
	Size    int      `query:"size" default:"20" minimum:"0" doc:"Items per page; 0 means 20, values above 500 mean 500"`
	Unpaged bool     `query:"unpaged" doc:"Return all items in one page, at most 2000"`
	Sort    []string `query:"sort,explode" doc:"field, or field,asc or field,desc; the first known field is used"`
}

// maxUnpaged is the maximum number of items in an unpaged list: a function's response is limited to 6 MB.
const maxUnpaged = 2000

func (p Paging) limit() int {
	if p.Unpaged {
		return maxUnpaged
	}
	return min(cmp.Or(p.Size, 20), httpapi.MaxPageSize)
}

func (p Paging) offset() int {
	if p.Unpaged {
		return 0
	}
	return p.Page * p.limit()
}

// sorting translates a client's sort order; it is empty if none of its fields is known.
func (p Paging) sorting(fields map[string]string) (s httpapi.Sorting) {
	for _, sort := range p.Sort {
		field, more, _ := strings.Cut(sort, ",") // uses the first of several fields; the last word is the direction
		if s.Sort = fields[field]; s.Sort == "" {
			continue
		}
		s.Order = "asc"
		if words := strings.Split(more, ","); strings.EqualFold(words[len(words)-1], "desc") {
			s.Order = "desc"
		}
		break
	}
	return s
}

// Page is a page of a list in the format of a Spring server.
type Page[T any] struct {
	Content          []T      `json:"content" nullable:"false"`
	Pageable         Pageable `json:"pageable"`
	TotalElements    int64    `json:"totalElements"`
	TotalPages       int64    `json:"totalPages"`
	Last             bool     `json:"last"`
	First            bool     `json:"first"`
	Number           int      `json:"number"`
	Size             int      `json:"size"`
	NumberOfElements int      `json:"numberOfElements"`
	Empty            bool     `json:"empty"`
	Sort             Sort     `json:"sort"`
}

// Pageable repeats the paging of the request.
type Pageable struct {
	PageNumber int  `json:"pageNumber"`
	PageSize   int  `json:"pageSize"`
	Sort       Sort `json:"sort"`
	Offset     int  `json:"offset"`
	Paged      bool `json:"paged"`
	Unpaged    bool `json:"unpaged"`
}

// Sort says whether the request had a sort order.
type Sort struct {
	Sorted   bool `json:"sorted"`
	Unsorted bool `json:"unsorted"`
	Empty    bool `json:"empty"`
}

func newPage[T any](p Paging, items []T, total int64) *Page[T] {
	if items == nil {
		items = []T{}
	}
	if p.Unpaged {
		p.Page = 0
	}
	size, offset := int64(p.limit()), p.offset()
	sort := Sort{Sorted: len(p.Sort) > 0, Unsorted: len(p.Sort) == 0, Empty: len(p.Sort) == 0}
	pages := (total + size - 1) / size
	return &Page[T]{Content: items, TotalElements: total, TotalPages: pages, Number: p.Page, Size: int(size), NumberOfElements: len(items),
		First: p.Page == 0, Last: int64(p.Page)+1 >= pages, Empty: len(items) == 0, Sort: sort,
		Pageable: Pageable{PageNumber: p.Page, PageSize: int(size), Sort: sort, Offset: offset, Paged: !p.Unpaged, Unpaged: p.Unpaged}}
}

// paged cuts a page out of a complete list.
func paged[T any](p Paging, items []T) *Page[T] {
	from := min(p.offset(), len(items))
	return newPage(p, items[from:min(from+p.limit(), len(items))], int64(len(items)))
}

// listed is a list of books or series.
type listed interface {
	Page(limit, offset int) (string, []any)
	Total() (string, []any)
}

// queuePage asks for a page of a list; load is it, once the batch has run.
func queuePage[R, T any](b *pgx.Batch, list listed, p Paging, sql func(ids, summary string) string, as func(R) T) (load func() *Page[T]) {
	var rows []R
	var total int64
	ids, args := list.Page(p.limit(), p.offset())
	db.All(b, &rows, sql(ids, inList), args...)
	count, args := list.Total()
	db.Value(b, &total, count, args...)
	return func() *Page[T] { return newPage(p, shown(rows, as), total) }
}

func shown[R, T any](rows []R, as func(R) T) []T {
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = as(r)
	}
	return out
}

// stamp is a time as clients read it: without fractions of a second.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// separated splits values, which may be repeated or comma-separated.
func separated(values []string) (out []string) {
	for _, v := range values {
		for s := range strings.SplitSeq(v, ",") {
			if s = strings.TrimSpace(s); s != "" && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}
