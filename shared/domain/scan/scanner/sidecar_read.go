package scanner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"

	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/comicinfo"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/format/mylar"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// maxCover is the maximum size of a cover picture in bytes.
const maxCover = 32 << 20

// sidecarRow is a series.json or cover picture that was not read yet, or has changed since.
type sidecarRow struct {
	Key      string     `db:"key"`
	Kind     string     `db:"kind"`
	Version  uuid.UUID  `db:"version"`
	Size     int64      `db:"size"`
	ETag     string     `db:"etag"`
	Modified time.Time  `db:"modified_at"`
	SeriesID *uuid.UUID `db:"series_id"` // described series; nil if there is none yet
}

// shelfRow is the library's data for reading them.
type shelfRow struct {
	Bucket       string `db:"bucket"`
	Prefix       string `db:"prefix"`
	Secret       []byte `db:"secret"`
	CoverSize    int    `db:"cover_size"`
	CoverQuality int    `db:"cover_quality"`
}

// describedRow is a series with the fields that series.json may fill, as texts.
type describedRow struct {
	ID     uuid.UUID `db:"id"`
	Values []*string `db:"values"`
}

// takeIn processes sidecars that were created, changed or deleted: those of a series are read and applied here; books
// whose package document has changed are analysed again.
func (s *Scanner) takeIn(ctx context.Context, h task.Held, keys []string) (any, error) {
	var b pgx.Batch
	var shelf *shelfRow
	var rows []sidecarRow
	db.One(&b, &shelf, `select l.bucket, l.prefix, t.secret, `+cover.Settings+` from library l join tenant t on t.id = l.tenant_id
		where l.tenant_id = app.tenant() and l.id = $1`, h.LibraryID)
	db.All(&b, &rows, `select k.key, k.kind, k.version, k.size, k.etag, k.modified_at, s.id as series_id
		from sidecar k left join series s on s.tenant_id = k.tenant_id and s.library_id = k.library_id and s.path = k.about
		where k.tenant_id = app.tenant() and k.library_id = $1 and k.key = any($2) and k.pending and k.kind <> 'opf'`, h.LibraryID, keys)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if shelf == nil {
		return nil, nil // the library was deleted
	}
	var documents, problems []*string
	for _, r := range rows {
		document, problem, err := s.readAbout(ctx, h.Tenant, *shelf, r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Key, err)
		}
		documents, problems = append(documents, nonEmpty(document)), append(problems, nonEmpty(clip(problem, 500)))
	}
	if err := s.storeAbout(ctx, h, keys, rows, documents, problems); err != nil {
		return nil, err
	}
	again, err := s.readAgain(ctx, *h.LibraryID, keys)
	if err != nil || len(again) == 0 {
		return nil, err
	}
	alone := h
	alone.ParentID = nil // the scan has counted these books already
	return s.analyze(ctx, alone, true, "b.id = any(@books)", pgx.NamedArgs{"books": again})
}

// readAbout reads a file that describes a series. It returns the JSON document to store, and the problem of the file.
func (s *Scanner) readAbout(ctx context.Context, tenant uuid.UUID, shelf shelfRow, r sidecarRow) (document, problem string, err error) {
	limit := int64(maxCover)
	if r.Kind == library.SeriesSidecar {
		limit = mylar.MaxBytes
	}
	object := blob.Object{Key: shelf.Prefix + r.Key, Size: r.Size, ETag: r.ETag, Modified: r.Modified}
	data, problem, err := readSidecar(ctx, s.Library, shelf.Bucket, object, limit)
	if err != nil || problem != "" {
		return "", problem, err
	}
	name := path.Base(r.Key)
	if r.Kind == library.SeriesSidecar {
		m, err := mylar.Parse(data)
		if err != nil {
			return "", name + " was not read: " + err.Error(), nil
		}
		says := descriptionOf(m)
		if says.AgeRating == nil && m.AgeRating != "" && !comicinfo.Unrated(m.AgeRating) {
			m.Warnings = append(m.Warnings, fmt.Sprintf("age_rating: %.60q is neither an age nor an age rating of ComicInfo", m.AgeRating))
		}
		for i, w := range m.Warnings {
			m.Warnings[i] = name + ": " + w
		}
		return toJSON(says), strings.Join(m.Warnings, "; "), nil
	}
	if !strings.HasPrefix(mediatype.Detect(data[:min(len(data), mediatype.HeadBytes)]), "image/") {
		return "", name + " is not an image that can be shown", nil
	}
	sum := sha256.Sum256(data)
	fingerprint := hex.EncodeToString(sum[:])
	if s.Cover != nil && r.SeriesID != nil {
		warning, err := s.Cover(ctx, tenant, *r.SeriesID, shelf.Secret, fingerprint, shelf.CoverSize, shelf.CoverQuality, data)
		switch {
		case err != nil && ctx.Err() != nil:
			return "", "", err
		case err != nil:
			slog.Warn("cannot store the cover of a series; it is made on its first request", "series", r.SeriesID, "key", r.Key, "tenant", tenant, "error", err)
		case warning != "":
			return "", name + ": " + warning, nil
		}
	}
	return toJSON(map[string]string{"fingerprint": fingerprint}), "", nil
}

// storeAbout stores what was read and applies it to the series.
func (s *Scanner) storeAbout(ctx context.Context, h task.Held, keys []string, rows []sidecarRow, documents, problems []*string) error {
	read, versions := make([]string, len(rows)), make([]uuid.UUID, len(rows))
	for i, r := range rows {
		read[i], versions[i] = r.Key, r.Version
	}
	var described, covered []string
	for _, key := range keys {
		switch kind, about := library.Sidecar(key); kind {
		case library.SeriesSidecar:
			described = append(described, about)
		case library.CoverSidecar:
			covered = append(covered, about)
		}
	}
	if len(described)+len(covered) == 0 {
		return nil
	}
	var b pgx.Batch
	var before, filled []describedRow
	var shown []uuid.UUID
	queueLock(&b, *h.LibraryID)
	b.Queue(`update sidecar k set pending = false, document = u.document::jsonb, problem = u.problem
		from unnest($2::text[], $3::uuid[], $4::text[], $5::text[]) as u(key, version, document, problem)
		where k.tenant_id = app.tenant() and k.library_id = $1 and k.key = u.key and k.version = u.version`, h.LibraryID, read, versions, documents, problems)
	const of = "s.library_id = $1 and s.path = any($2)"
	var columns []string
	for _, f := range descriptionFields {
		columns = append(columns, "s."+f.column+"::text")
	}
	fields := "select s.id, array[" + strings.Join(columns, ", ") + "] as values from series s where s.tenant_id = app.tenant() and " + of + " order by s.id"
	db.All(&b, &before, fields, h.LibraryID, described)
	b.Queue(withdraw(of), h.LibraryID, described)
	b.Queue(fillIn(of), h.LibraryID, described)
	db.All(&b, &filled, fields, h.LibraryID, described)
	db.Values(&b, &shown, "select s.id from series s where s.tenant_id = app.tenant() and "+of, h.LibraryID, covered)
	if err := s.Database.Run(ctx, &b); err != nil {
		return err
	}
	var out []events.Event
	for i, d := range filled { // the same series as before: only this transaction writes them
		var changed []string
		for n, f := range descriptionFields {
			if !reflect.DeepEqual(before[i].Values[n], d.Values[n]) {
				changed = append(changed, f.lock)
			}
		}
		if len(changed) > 0 {
			out = append(out, events.SeriesUpdated(events.Series{ID: d.ID, LibraryID: *h.LibraryID}, changed...))
		}
	}
	for _, id := range shown {
		out = append(out, events.CoverUpdated(events.SeriesEntity, id, h.LibraryID))
	}
	s.Publish(ctx, h.Tenant, out...)
	return nil
}

// description holds the fields that series.json fills, by column name.
type description struct {
	Summary   string `json:"summary,omitempty"`
	Publisher string `json:"publisher,omitempty"`
	Imprint   string `json:"imprint,omitempty"`
	Status    string `json:"status,omitempty"`
	Year      *int   `json:"year,omitempty"`
	AgeRating *int   `json:"age_rating,omitempty"`
	Issues    *int   `json:"total_chapter_count,omitempty"`
}

// mylarAges are Mylar's age ratings that are neither ages (9+, 12+, 15+, 17+) nor in ComicInfo, in lower case.
var mylarAges = map[string]string{"all": "0", "adult": "18"}

func descriptionOf(m *mylar.Series) description {
	age := comicinfo.Info{AgeRating: cmp.Or(mylarAges[strings.ToLower(m.AgeRating)], m.AgeRating)}
	return description{Summary: norm.NFC.String(m.Summary), Publisher: norm.NFC.String(m.Publisher), Imprint: norm.NFC.String(m.Imprint), Status: m.Status, Year: m.Year, AgeRating: age.MinimumAge(), Issues: m.Issues}
}

// descriptionFields are the fields of description: lock, column and type.
var descriptionFields = []struct{ lock, column, kind string }{
	{"summary", "summary", "text"}, {"publisher", "publisher", "text"}, {"imprint", "imprint", "text"}, {"status", "status", "text"},
	{"year", "year", "integer"}, {"ageRating", "age_rating", "integer"}, {"totalChapterCount", "total_chapter_count", "double precision"},
}

// withdraw returns the statement that clears the unlocked fields that series.json had filled in some series. Locked
// ones go on counting as filled by it, for the time when they are no longer locked.
func withdraw(of string) string {
	var set []string
	for _, f := range descriptionFields {
		set = append(set, fmt.Sprintf("%[2]s = case when '%[1]s' = any(s.described) and not '%[1]s' = any(s.locks) then null else s.%[2]s end", f.lock, f.column))
	}
	return "update series s set described = array(select unnest(s.described) intersect select unnest(s.locks)), " + strings.Join(set, ", ") + " where s.tenant_id = app.tenant() and not s.described <@ s.locks and " + of
}

// fillIn returns the statement that fills the empty, unlocked fields of some series from series.json, after withdraw.
func fillIn(of string) string {
	var set, names, fresh, columns []string
	for _, f := range descriptionFields {
		empty := fmt.Sprintf("s.%[2]s is null and d.%[2]s is not null and not '%[1]s' = any(s.locks)", f.lock, f.column)
		set = append(set, fmt.Sprintf("%[1]s = case when %[2]s then d.%[1]s else s.%[1]s end", f.column, empty))
		names = append(names, fmt.Sprintf("case when %s then '%s' end", empty, f.lock))
		fresh, columns = append(fresh, empty), append(columns, f.column+" "+f.kind)
	}
	return "update series s set " + strings.Join(set, ", ") + ", described = s.described || array_remove(array[" + strings.Join(names, ", ") + "], null), updated_at = now()" +
		" from sidecar k cross join lateral jsonb_to_record(k.document) as d(" + strings.Join(columns, ", ") + ")" +
		" where s.tenant_id = app.tenant() and k.tenant_id = app.tenant() and k.library_id = s.library_id and k.kind = 'series' and k.about = s.path" +
		" and k.document is not null and (" + strings.Join(fresh, " or ") + ") and " + of
}

// queueDescriptions runs a statement (withdraw or fillIn) for the series of some books: first withdraw, then the books'
// own metadata, then fillIn.
func queueDescriptions(b *pgx.Batch, found []analyzed, statement func(of string) string) {
	books := make([]uuid.UUID, len(found))
	for i, a := range found {
		books[i] = a.ID
	}
	b.Queue(statement("s.id in (select k.series_id from book k where k.tenant_id = app.tenant() and k.id = any($1))"), books)
}
