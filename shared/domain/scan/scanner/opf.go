package scanner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/analysis"
	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
)

// packageRow is a package document beside books. It is read when the first of them is analysed, and its content is
// stored.
type packageRow struct {
	LibraryID uuid.UUID `db:"library_id"`
	Key       string    `db:"key"`
	About     string    `db:"about"`
	Version   uuid.UUID `db:"version"`
	Size      int64     `db:"size"`
	ETag      string    `db:"etag"`
	Modified  time.Time `db:"modified_at"`
	Pending   bool      `db:"pending"`
	Document  []byte    `db:"document"`
	Problem   *string   `db:"problem"`
}

// packageDocument is a package document during an analysis; several books may use it at once.
type packageDocument struct {
	packageRow
	mu   sync.Mutex
	done bool
	says *analysis.Sidecar // nil: unreadable, Problem says why
	err  error
}

// packagePlace identifies a package document for its books.
type packagePlace struct {
	library uuid.UUID
	about   string
}

// packagesSQL selects package documents by library and about.
const packagesSQL = `select s.library_id, s.key, s.about, s.version, s.size, s.etag, s.modified_at, s.pending, s.document, s.problem
	from unnest($1::uuid[], $2::text[]) as u(library, about)
	join sidecar s on s.tenant_id = app.tenant() and s.library_id = u.library and s.about = u.about and s.kind = 'opf' order by s.key`

// packages finds the package documents beside books.
func (s *Scanner) packages(ctx context.Context, books []bookRow) error {
	asked := map[packagePlace]bool{}
	var libraries []uuid.UUID
	var abouts []string
	for _, b := range books {
		for _, about := range library.About(b.Key) {
			if at := (packagePlace{b.LibraryID, about}); !asked[at] {
				asked[at] = true
				libraries, abouts = append(libraries, at.library), append(abouts, about)
			}
		}
	}
	rows, err := db.List[packageRow](ctx, s.Database, packagesSQL, libraries, abouts)
	if err != nil {
		return err
	}
	found := map[packagePlace]*packageDocument{}
	for _, r := range rows {
		found[packagePlace{r.LibraryID, r.About}] = &packageDocument{packageRow: r}
	}
	for i := range books {
		b := &books[i]
		for _, about := range library.About(b.Key) {
			if p := found[packagePlace{b.LibraryID, about}]; p != nil {
				b.besides = append(b.besides, p)
			}
		}
	}
	return nil
}

// read reads the document if that was not done. An error is a failure of the store. One that comes with the end of a
// book's time is not that of the other books.
func (p *packageDocument) read(ctx context.Context, reader *content.Reader, bucket, prefix string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done {
		p.err = p.load(ctx, reader, bucket, prefix)
		p.done = p.err == nil || ctx.Err() == nil
	}
	return p.err
}

func (p *packageDocument) load(ctx context.Context, reader *content.Reader, bucket, prefix string) error {
	if !p.Pending {
		if len(p.Document) == 0 {
			return nil
		}
		p.says = &analysis.Sidecar{}
		return json.Unmarshal(p.Document, p.says)
	}
	name := path.Base(p.Key)
	object := blob.Object{Key: prefix + p.Key, Size: p.Size, ETag: p.ETag, Modified: p.Modified}
	data, problem, err := readSidecar(ctx, reader.Store, bucket, object, reader.Publications.XML.WithDefaults().Bytes)
	if err == nil && problem == "" {
		if p.says, err = analysis.ReadSidecar(data, name, reader.Publications); err != nil {
			p.says, problem, err = nil, name+" was not read: "+strings.TrimPrefix(err.Error(), name+": "), nil
		}
	}
	p.Problem = nonEmpty(clip(problem, 500))
	if p.says != nil {
		p.Document, err = json.Marshal(p.says)
	}
	return err
}

// readSidecar reads a small file completely. problem says what is wrong with it; an error is a failure of the store.
func readSidecar(ctx context.Context, store *blob.Store, bucket string, o blob.Object, limit int64) (data []byte, problem string, err error) {
	name := path.Base(o.Key)
	switch {
	case o.Size == 0:
		return nil, name + " is empty", nil
	case o.Size > limit:
		return nil, fmt.Sprintf("%s was not read: it has %d bytes; the limit is %d", name, o.Size, limit), nil
	}
	data, err = store.ReadRange(ctx, bucket, o, 0, o.Size)
	if err != nil {
		err = store.Why(ctx, bucket, o, err)
	}
	switch {
	case blob.Lost(err):
		return nil, name + " changed while it was read; scan again", nil
	case errors.Is(err, blob.ErrDenied), errors.Is(err, blob.ErrClosed):
		return nil, name + " cannot be read: check its permissions", nil
	case errors.Is(err, blob.ErrArchived):
		return nil, name + " was not read: the store has archived it (S3 Glacier)", nil
	}
	return data, "", err
}

// override applies the package documents beside a book over its file, highest precedence last.
func (a *analyzed) override(ctx context.Context, reader *content.Reader) error {
	for _, p := range slices.Backward(a.besides) {
		if err := p.read(ctx, reader, a.Bucket, a.Prefix); err != nil {
			return fmt.Errorf("%s: %w", p.Key, err)
		}
		if p.Problem != nil {
			a.Warnings = append(a.Warnings, *p.Problem)
		}
		if p.says != nil {
			a.Override(p.says)
		}
	}
	return nil
}

// queuePackages stores the content of package documents, and for each book with which of them it was read.
func queuePackages(b *pgx.Batch, found []analyzed) {
	var libraries, versions, books []uuid.UUID
	var keys []string
	var documents, problems []*string
	var used []*uuid.UUID
	kept := map[*packageDocument]bool{}
	for _, a := range found {
		books = append(books, a.ID)
		if len(a.besides) == 0 {
			used = append(used, nil)
			continue
		}
		used = append(used, new(a.version()))
		if a.Result == nil { // an unreadable book did not use them
			continue
		}
		for _, p := range a.besides {
			if !p.Pending || kept[p] {
				continue
			}
			kept[p] = true
			libraries, keys, versions = append(libraries, p.LibraryID), append(keys, p.Key), append(versions, p.Version)
			documents, problems = append(documents, nonEmpty(string(p.Document))), append(problems, p.Problem)
		}
	}
	b.Queue(`update sidecar k set pending = false, document = u.document::jsonb, problem = u.problem
		from unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::text[]) as u(library, key, version, document, problem)
		where k.tenant_id = app.tenant() and k.library_id = u.library and k.key = u.key and k.version = u.version`, libraries, keys, versions, documents, problems)
	b.Queue(`update book k set sidecar = u.used from unnest($1::uuid[], $2::uuid[]) as u(id, used)
		where k.tenant_id = app.tenant() and k.id = u.id and k.sidecar is distinct from u.used`, books, used)
}

// queueStale adds a task for analysed books whose package document was created, changed or deleted while they were
// being read.
func (s *Scanner) queueStale(ctx context.Context, h task.Held, found []analyzed) error {
	books := make([]bookRow, len(found))
	for i, a := range found {
		books[i] = a.bookRow
		books[i].besides = nil
	}
	if err := s.packages(ctx, books); err != nil {
		return err
	}
	var stale []uuid.UUID
	for i, a := range found {
		if books[i].version() != a.version() {
			stale = append(stale, a.ID)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	var b pgx.Batch
	var id uuid.UUID
	if err := task.Add(&b, task.Spec{Type: task.AnalyzeBooks, LibraryID: h.LibraryID, Params: analyzeParams{BookIDs: stale, Force: true}}, &id); err != nil {
		return err
	}
	if err := s.Database.Run(ctx, &b); err != nil {
		return err
	}
	s.Added.Tell(ctx, h.Tenant)
	return nil
}

// version returns the version of the package document beside a book; combined if there are two, zero if there is none.
func (b bookRow) version() (v uuid.UUID) {
	for i, p := range b.besides {
		if i == 0 {
			v = p.Version
		} else {
			v = uuid.NewSHA1(v, p.Version[:])
		}
	}
	return v
}

// readAgain finds the books that were read with other versions of package documents than the current ones, among the
// books that the documents in keys describe.
func (s *Scanner) readAgain(ctx context.Context, libraryID uuid.UUID, keys []string) ([]uuid.UUID, error) {
	var from, to []string
	for _, key := range keys {
		switch kind, about := library.Sidecar(key); {
		case kind != library.PackageSidecar:
		case strings.HasSuffix(about, "/"):
			from, to = append(from, about), append(to, about[:len(about)-1]+"0") // 0 follows the slash
		default:
			from, to = append(from, about+"."), append(to, about+"/") // the slash follows the dot
		}
	}
	if len(from) == 0 {
		return nil, nil
	}
	rows, err := db.List[struct {
		ID      uuid.UUID  `db:"id"`
		Key     string     `db:"key"`
		Sidecar *uuid.UUID `db:"sidecar"`
	}](ctx, s.Database, `select distinct b.id, b.key, b.sidecar from unnest($2::text[], $3::text[]) as u(low, high)
		join book b on b.tenant_id = app.tenant() and b.library_id = $1 and b.key >= u.low and b.key < u.high
		where (b.analyzed or b.error_type is not null) and b.deleted_at is null and strpos(substr(b.key, length(u.low) + 1), '/') = 0`, libraryID, from, to)
	if err != nil {
		return nil, err
	}
	books := make([]bookRow, len(rows))
	for i, r := range rows {
		books[i] = bookRow{ID: r.ID, LibraryID: libraryID, Key: r.Key}
	}
	if err := s.packages(ctx, books); err != nil {
		return nil, err
	}
	var out []uuid.UUID
	for i, r := range rows {
		if r.Sidecar == nil {
			r.Sidecar = &uuid.UUID{}
		}
		if books[i].version() != *r.Sidecar {
			out = append(out, r.ID)
		}
	}
	return out, nil
}
