package catalog

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/fault"
)

// feed is one page of the catalog, for either version.
type feed struct {
	name  string // its id derives from this
	title string
	path  string // path below the catalog's root; "" is the root
	up    string // path of the parent
	site  string // name of this server

	places    []place // links of the root
	libraries []library
	lists     []list
	series    []series
	books     []publication
	reads     bool // contains books: an acquisition feed
	found     bool // search results: series and books

	paging paging
	total  int64 // over all its pages; 0 if it has no pages
}

// place is a feed that the root links to.
type place struct{ title, path, about, rel string }

var places = []place{
	{"Libraries", "/libraries", "All libraries", relSubsection},
	{"Collections", collections.path, "Series that belong together", relSubsection},
	{"Read lists", readLists.path, "Books that belong together", relSubsection},
	{"Recently added", "/recent", "The newest books", "http://opds-spec.org/sort/new"},
}

type library struct {
	ID        uuid.UUID `db:"id"`
	Name      string    `db:"name"`
	Series    int64     `db:"series"`
	UpdatedAt time.Time `db:"updated_at"`
}

// list is a collection or a read list.
type list struct {
	kind      listKind
	ID        uuid.UUID `db:"id"`
	Name      string    `db:"name"`
	Summary   *string   `db:"summary"`
	UpdatedAt time.Time `db:"updated_at"`
}

// listKind holds the differences between collections and read lists.
type listKind struct {
	path, name, kind string // kind as in package collection
	reads            bool   // contains books
}

var (
	collections = listKind{"/collections", "Collections", "series", false}
	readLists   = listKind{"/readlists", "Read lists", "books", true}
)

type series struct {
	ID        uuid.UUID `db:"id"`
	LibraryID uuid.UUID `db:"library_id"`
	Title     string    `db:"title"`
	Summary   *string   `db:"summary"`
	Books     int64     `db:"book_count"`
	UpdatedAt time.Time `db:"updated_at"`
}

// publication is a book with the caller's progress.
type publication struct {
	ID          uuid.UUID     `db:"id"`
	SeriesID    uuid.UUID     `db:"series_id"`
	Series      string        `db:"series_title"`
	Title       string        `db:"title"`
	Number      *float64      `db:"number"`
	Summary     *string       `db:"summary"`
	Publisher   *string       `db:"publisher"`
	Language    *string       `db:"language"`
	Authors     []book.Author `db:"authors"`
	Format      string        `db:"format"`
	Size        int64         `db:"size"`
	Pages       int32         `db:"page_count"`
	Images      int32         `db:"images"` // pages that can be shown one by one
	CreatedAt   time.Time     `db:"created_at"`
	UpdatedAt   time.Time     `db:"updated_at"`
	CurrentPage *int32        `db:"current_page"` // nil without progress
	Percentage  *float64      `db:"percentage"`
	Completed   *bool         `db:"completed"`
	ReadAt      *time.Time    `db:"read_at"`
}

func (p publication) cover() string { return "/api/v1/books/" + p.ID.String() + "/thumbnail" }
func (s series) cover() string      { return "/api/v1/series/" + s.ID.String() + "/thumbnail" }
func (l library) cover() string     { return "/api/v1/libraries/" + l.ID.String() + "/thumbnail" }
func (l list) cover() string        { return "/api/v1" + l.kind.path + "/" + l.ID.String() + "/thumbnail" }

// file ends in the format's extension: KOReader takes application/zip for FictionBook, and knows no type of CBR.
func (p publication) file() string {
	return "/api/v1/books/" + p.ID.String() + "/file/book." + p.Format
}

// names returns the people of the book without duplicates, regardless of role.
func (p publication) names() (names []string) {
	seen := map[string]bool{}
	for _, a := range p.Authors {
		if !seen[a.Name] {
			seen[a.Name] = true
			names = append(names, a.Name)
		}
	}
	return names
}

// updated returns the latest change of anything in the feed.
func (f *feed) updated() time.Time {
	var at time.Time
	newest := func(t time.Time) {
		if t.After(at) {
			at = t
		}
	}
	for _, l := range f.libraries {
		newest(l.UpdatedAt)
	}
	for _, l := range f.lists {
		newest(l.UpdatedAt)
	}
	for _, s := range f.series {
		newest(s.UpdatedAt)
	}
	for _, p := range f.books {
		newest(p.UpdatedAt)
	}
	if at.IsZero() {
		return time.Now()
	}
	return at
}

// paging is the requested part of a feed.
type paging struct {
	page, size int
	query      url.Values // other parameters
}

// Page sizes of feeds. The books of a series come all at once, up to the maximum page size of a list, because some
// clients show only the first page.
const (
	defaultSize = 50
	maxSize     = 100
)

// pagingOf parses page and pageSize of a feed; size is the default.
func pagingOf(r *http.Request, size int) (paging, error) {
	p := paging{page: 1, size: size, query: url.Values{}}
	var bad []fault.Field
	for name, to := range map[string]*int{"page": &p.page, "pageSize": &p.size} {
		v := r.URL.Query().Get(name)
		if v == "" {
			continue
		}
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n < 0 {
			bad = append(bad, fault.Field{Field: name, Message: "must be a whole number from 1"})
			continue
		}
		*to = int(n)
	}
	p.page = max(p.page, 1)
	p.size = min(cmp.Or(p.size, size), max(size, maxSize))
	return p, fault.InvalidFields(bad)
}

func (p paging) offset() int { return (p.page - 1) * p.size }

// at returns the query of another page, "" for a feed without pages.
func (p paging) at(page int) string {
	q := url.Values{}
	for k, v := range p.query {
		q[k] = v
	}
	if p.size > 0 {
		q.Set("page", strconv.Itoa(page))
		q.Set("pageSize", strconv.Itoa(p.size))
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// last returns the number of the last page.
func (f *feed) last() int {
	if f.paging.size == 0 {
		return 1
	}
	return max(1, int((f.total+int64(f.paging.size)-1)/int64(f.paging.size)))
}

// words returns the search text as sent, and normalized.
func words(r *http.Request, name string) (sent, find string, err error) {
	sent = r.URL.Query().Get(name)
	find = naming.Normalize(sent)
	switch {
	case find == "":
		return "", "", fault.Invalid(name, "is required: the words to search for")
	case len(sent) > maxQuery:
		return "", "", fault.Invalid(name, "is longer than %d bytes", maxQuery)
	}
	return sent, find, nil
}

const maxQuery = 1000
