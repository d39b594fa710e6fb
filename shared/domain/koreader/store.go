package koreader

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/lazyregexp"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

var (
	errOff       = fault.New(fault.NotFound, "KOReader sync is off: an administrator can turn it on with the setting %s", setting.KOReader)
	errUnknown   = fault.New(fault.NotFound, "No book has this file; a new file can take a few minutes to be recognised")
	errAmbiguous = fault.New(fault.Conflict, "Several books have this file, so it is not clear which one is meant")
)

func unknown(err error) bool { return errors.Is(err, errUnknown) }

// queue adds the task that makes the digests, where it was not added within an hour, or books have come since; id
// receives its id then.
func queue(b *pgx.Batch, id *uuid.UUID) error {
	return task.AddFor(b, task.Spec{Type: task.KOReaderDigests, DedupeKey: task.KOReaderDigests}, task.Found(
		`select null::uuid as library_id, null::uuid as series_id, null::uuid as book_id, '{}'::jsonb as params
		from (select max(t.created_at) as at from task t where t.tenant_id = app.tenant() and t.type = '`+task.KOReaderDigests+`' and t.created_at > now() - interval '1 hour') last
		where last.at is null or exists (select from book b where b.tenant_id = app.tenant() and b.deleted_at is null and b.created_at >= last.at)`), id)
}

// book is a book with the file of a document.
type book struct {
	ID     uuid.UUID `db:"id"`
	Format string    `db:"format"`
	Spine  []string  `db:"spine"`
}

// these joins the books whose current file has the digest $1.
const these = `from koreader_digest d join book b on b.tenant_id = d.tenant_id and b.id = d.book_id
	  and (d.file_size, d.file_etag, d.file_modified) = (b.size, b.etag, b.modified_at)
	where d.tenant_id = app.tenant() and d.digest = $1 and b.deleted_at is null`

// asked is the book of a document, after the batch has run.
type asked struct {
	on    bool
	books []book
}

func (a *asked) queue(b *pgx.Batch, document string) {
	setting.Bool(b, setting.KOReader, &a.on)
	db.All(b, &a.books, "select b.id, b.format, d.spine "+these+" limit 2", document)
}

func (a *asked) book() (*book, error) {
	switch {
	case !a.on:
		return nil, errOff
	case len(a.books) == 0:
		return nil, errUnknown
	case len(a.books) > 1:
		return nil, errAmbiguous
	}
	return &a.books[0], nil
}

// enter refuses if the tenant has not turned it on.
func enter(ctx context.Context, d *db.DB) error {
	var b pgx.Batch
	var on bool
	setting.Bool(&b, setting.KOReader, &on)
	if err := d.Run(ctx, &b); err != nil {
		return err
	}
	if !on {
		return errOff
	}
	return nil
}

// place returns the caller's position in a document, in KOReader's format.
func place(ctx context.Context, d *db.DB, document string) (*Place, error) {
	var b pgx.Batch
	var a asked
	var last *progress.Last
	a.queue(&b, document)
	progress.QueueLast(&b, &last, "(select b.id "+these+" limit 1)", document)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	found, err := a.book()
	if err != nil {
		return nil, err
	}
	if last == nil {
		return nil, fault.New(fault.NotFound, "You have not read the book yet")
	}
	return &Place{Document: document, Progress: found.told(last), Percentage: last.Percentage}, nil
}

// store stores the caller's position.
func (p *NewPlace) store(ctx context.Context, d *db.DB) error {
	text, err := p.text()
	if err != nil {
		return err
	}
	var b pgx.Batch
	var a asked
	a.queue(&b, p.Document)
	if err := d.Run(ctx, &b); err != nil {
		return err
	}
	found, err := a.book()
	if err != nil {
		return err
	}
	ebook := strings.EqualFold(found.Format, "epub")
	t := progress.Told{Percentage: p.Percentage, Device: "koreader:" + p.DeviceID}
	if p.Device != "" {
		t.DeviceName = &p.Device
	}
	switch number := wholeNumber.MatchString(text); {
	case number && !ebook: // in an e-book, page numbers are KOReader's own
		n, _ := strconv.Atoi(text) // at most nine digits
		t.Page = new(int32(n))
	case !number && ebook:
		if t.Locator, err = found.locator(text, p.Percentage); err != nil {
			return err
		}
	}
	return progress.Tell(ctx, d, found.ID, t)
}

// locator is a position in an e-book in the format of Readium's toolkit, with KOReader's position added. If the
// document of the position is unknown, it has only KOReader's part.
type locator struct {
	Href      string `json:"href"`
	Type      string `json:"type"`
	Locations struct {
		TotalProgression float64 `json:"totalProgression"`
	} `json:"locations"`
	KOReader string `json:"koreader,omitempty"`
}

// How KOReader names a document of the spine: numbered from 1, without a number if there is only one; in older
// versions, from 0.
var fragment, olderFragment = lazyregexp.New(`^/body(?:\[1\])?/DocFragment(?:\[(\d{1,6})\])?(?:[/.]|$)`), lazyregexp.New(`^#_doc_fragment_(\d{1,6})_`)

func (k *book) locator(text string, percentage float64) (*string, error) {
	n := 0
	if m := fragment.FindStringSubmatch(text); m != nil {
		n, _ = strconv.Atoi(cmp.Or(m[1], "1")) // at most six digits
	} else if m := olderFragment.FindStringSubmatch(text); m != nil {
		n, _ = strconv.Atoi(m[1])
		n++
	}
	l := locator{Type: "application/xhtml+xml", KOReader: text}
	if n >= 1 && n <= len(k.Spine) {
		l.Href = (&url.URL{Path: k.Spine[n-1]}).EscapedPath()
	}
	l.Locations.TotalProgression = percentage
	data, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	return new(string(data)), nil
}

// told returns a position in KOReader's format: its own text if stored, else the document, else the page.
func (k *book) told(last *progress.Last) string {
	if !strings.EqualFold(k.Format, "epub") {
		return strconv.Itoa(int(max(1, last.Page)))
	}
	var l locator
	// A position that was sent before a later page of the same session is outdated.
	if last.Locator != nil && json.Unmarshal([]byte(*last.Locator), &l) == nil && math.Abs(l.Locations.TotalProgression-last.Percentage) < 0.02 {
		if l.KOReader != "" {
			return l.KOReader
		}
		if n := k.document(l.Href); n > 0 {
			return "/body/DocFragment[" + strconv.Itoa(n) + "].0"
		}
	}
	return "/body/DocFragment[" + strconv.Itoa(int(min(max(1, last.Page), int32(max(1, len(k.Spine)))))) + "].0"
}

// document returns the number, from 1, of the spine document that an href names; 0 if there is none. The href may be an
// address of this server (package webpub), or relative to the root of the archive or to the package document.
func (k *book) document(href string) int {
	u, err := url.Parse(href)
	if err != nil {
		return 0
	}
	name := u.Path
	if _, within, ok := strings.Cut(name, "/resource/"); ok && strings.Contains(name, "/api/v1/books/") {
		name = within
	}
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if n := slices.Index(k.Spine, name); n >= 0 {
		return n + 1
	}
	return slices.IndexFunc(k.Spine, func(s string) bool { return strings.HasSuffix(s, "/"+name) }) + 1
}
