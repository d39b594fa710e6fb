package export

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

const (
	// partBytes is the size of a part. A task needs that much memory, plus a batch of rows.
	partBytes = 8 << 20
	// maxParts is the maximum number of parts of an object.
	maxParts = 10_000
	// tellEvery is the interval of progress updates.
	tellEvery = time.Second
)

// Maker writes the files of exports, and cleans up.
type Maker struct {
	Database *db.DB
	Media    *blob.Store
	Bucket   string
	Publish  events.Publish
	// PartBytes is the size of a part; zero is partBytes. Stores reject less than 5 MiB, except for the last part.
	PartBytes int
}

// Params are the parameters of export_series tasks.
type Params struct {
	ExportID uuid.UUID `json:"exportId"`
	UserID   uuid.UUID `json:"userId"`
}

// Result is the result of the task.
type Result struct {
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}

// place is the checkpoint of the task: after the last stored part.
type place struct {
	Object  string      `json:"object"` // key
	Upload  string      `json:"upload"` // empty: none has begun
	Parts   []blob.Part `json:"parts"`
	Bytes   int64       `json:"bytes"`   // of all parts
	Section int         `json:"section"` // section of the file that the cursor is in
	Begun   bool        `json:"begun"`   // its beginning is written
	In      int64       `json:"in"`      // rows in it
	Rows    int64       `json:"rows"`    // rows in the file
	Total   int64       `json:"total"`   // rows at the start
	Sight   *string     `json:"sight"`   // see app.sight; nil before the first batch
	At      cursor      `json:"at"`
}

// source is an export to make.
type source struct {
	Format     string      `db:"format"`
	ExportType string      `db:"export_type"`
	LibraryIDs []uuid.UUID `db:"library_ids"`
	Fields     []string    `db:"fields"`
	BookFields []string    `db:"book_fields"`
	Max        int64       `db:"max_bytes"` // of all files together
}

var (
	// errGone says that the export was deleted.
	errGone   = errors.New("the export was deleted")
	errNoRoom = errors.New("no room for the export")
)

// Make handles export_series tasks.
func (m *Maker) Make(ctx context.Context, h task.Held) (any, error) {
	var p Params
	if err := json.Unmarshal(h.Params, &p); err != nil {
		return nil, fault.Wrap(err, fault.BadRequest, "The task does not name an export")
	}
	var at place
	if err := h.Resume(&at); err != nil {
		return nil, err
	}
	r := &run{Maker: m, held: h, params: p, at: at, saved: at}
	result, err := r.make(ctx)
	switch {
	case errors.Is(err, errGone):
		return Result{}, r.forget(ctx)
	case err == nil, db.LeaseLost(err), ctx.Err() != nil: // the last two: another worker continues, or it was cancelled
		return result, err
	}
	if fault.Is(err, fault.Unauthorized) { // a retry does not change it
		err = fault.Wrap(err, fault.Conflict, "%s", fault.From(err).Message)
	}
	if h.Last(err) {
		return nil, errors.Join(err, r.fail(ctx, err))
	}
	return nil, err
}

// run is one run of the task.
type run struct {
	*Maker
	held   task.Held
	params Params
	source *source
	parts  []section
	buffer bytes.Buffer // written after at.Parts
	at     place        // after what is written
	saved  place        // after what is stored
	// further reports that this run has stored a part.
	further bool
	told    time.Time
}

func (r *run) make(ctx context.Context) (any, error) {
	done, err := r.load(ctx)
	if err != nil || done != nil {
		return done, err
	}
	w := writers[r.source.Format]
	for r.at.Section < len(r.parts) {
		s := &r.parts[r.at.Section]
		if !r.at.Begun {
			w.begin(&r.buffer, s)
			r.at.Begun = true
		}
		rows, err := r.read(ctx, s)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			values, err := rows[i].decode()
			if err != nil {
				return nil, err
			}
			w.row(&r.buffer, s, r.at.In, values)
			r.at.In, r.at.Rows, r.at.At = r.at.In+1, r.at.Rows+1, rows[i].cursor
			if err := r.flush(ctx); err != nil {
				return nil, err
			}
		}
		if len(rows) < batch {
			w.end(&r.buffer, s)
			r.at.Section, r.at.Begun, r.at.In, r.at.At = r.at.Section+1, false, 0, cursor{}
		}
		if err := r.tell(ctx); err != nil {
			return nil, err
		}
		// It pauses only after a stored part, which takes some seconds at most: otherwise a run might make no progress.
		if r.further && task.MustPause(ctx) {
			return nil, task.Paused(r.saved)
		}
	}
	return r.finish(ctx)
}

// load reads the export. If it is made already, done is the result of the task.
func (r *run) load(ctx context.Context) (done any, err error) {
	var b pgx.Batch
	var found *struct {
		source
		Completed *time.Time `db:"completed_at"`
		Failed    bool       `db:"failed"`
		Rows      int64      `db:"row_count"`
		Bytes     int64      `db:"file_size"`
	}
	b.Queue(`update series_export set started_at = coalesce(started_at, now()) where tenant_id = app.tenant() and id = $1 and account_id = $2`, r.params.ExportID, r.params.UserID)
	db.One(&b, &found, `select format, export_type, library_ids, fields, book_fields, completed_at, error is not null as failed,
		coalesce(row_count, 0) as row_count, coalesce(file_size, 0) as file_size, (`+setting.SQL(setting.ExportBytes)+`)::bigint as max_bytes
		from series_export where tenant_id = app.tenant() and id = $1 and account_id = $2`, r.params.ExportID, r.params.UserID)
	switch err := r.Database.Run(ctx, &b); {
	case err != nil:
		return nil, err
	case found == nil, found.Failed:
		for _, err := range r.Media.DeletePages(ctx, r.Bucket, Folder(r.held.Tenant)+r.params.ExportID.String()+"/", time.Time{}) {
			if err != nil { // a run that has died may have stored a file after the last clean-up
				return nil, err
			}
		}
		return nil, errGone
	case found.Completed != nil:
		return Result{found.Rows, found.Bytes}, nil
	}
	r.source = &found.source
	r.parts = sections(r.source)
	if r.at.Upload == "" {
		// Each run that starts over writes its own object, so that a run that has lost its lease cannot damage it.
		r.at.Object = Folder(r.held.Tenant) + r.params.ExportID.String() + "/" + strconv.Itoa(int(r.held.Epoch))
		r.saved = r.at
	}
	return nil, nil
}

// asUser returns ctx acting as the user: every query omits what sharing tags hide.
func (r *run) asUser(ctx context.Context) context.Context {
	return db.In(ctx, db.Acting{Task: r.held.Scope(), Account: r.params.UserID})
}

// Folder returns the prefix of a tenant's exports in the media bucket.
func Folder(tenant uuid.UUID) string { return tenant.String() + "/export/" }

// read returns the next batch of rows that the user sees.
func (r *run) read(ctx context.Context, s *section) ([]row, error) {
	var b pgx.Batch
	var rows []row
	var wanted bool
	var others, own int64
	sight := r.at.Sight
	db.Value(&b, &wanted, "select exists (select from series_export where tenant_id = app.tenant() and id = $1 and account_id = app.account())", r.params.ExportID)
	db.Value(&b, &others, "select coalesce(sum(file_size), 0)::bigint from series_export where tenant_id = app.tenant()")
	db.Value(&b, &own, "select coalesce(sum(file_size), 0)::bigint from series_export where tenant_id = app.tenant() and account_id = app.account()")
	if sight == nil {
		r.at.Total, sight = 0, new(string)
		for _, s := range r.parts {
			b.Queue(`select coalesce(case when cardinality($1::uuid[]) = 0 then app.total($2)
				else (select sum(app.total($2, l)) from unnest($1) l) end, 0)::bigint`, r.source.LibraryIDs, s.name).QueryRow(func(row pgx.Row) error {
				var n int64
				err := row.Scan(&n)
				r.at.Total += n
				return err
			})
		}
		db.Value(&b, sight, "select app.sight()")
	}
	args := []any{r.source.LibraryIDs, r.at.At.Title, r.at.At.Series}
	if s.name == "books" {
		args = append(args, r.at.At.Number, r.at.At.Book, r.at.At.ID)
	}
	db.All(&b, &rows, s.sql, args...)
	if err := r.Database.RunWithin(r.asUser(ctx), &b, time.Minute); err != nil {
		return nil, err
	}
	r.at.Sight = sight
	size := r.at.Bytes + int64(r.buffer.Len())
	switch {
	case !wanted:
		return nil, errGone
	case others+size > r.source.Max:
		return nil, noRoom(r.source.Max)
	case own+size > share(r.source.Max):
		return nil, noShare(r.source.Max)
	}
	return rows, nil
}

func noRoom(most int64) error {
	return fault.Wrap(errNoRoom, fault.Conflict, "There is no room for the file: all exports together may take %d bytes. Export less, or wait until others expire", most)
}

func noShare(most int64) error {
	return fault.Wrap(errNoRoom, fault.Conflict, "There is no room for the file: your exports together may take %d bytes, half of what all exports may take. "+
		"Export less, or delete some", share(most))
}

// flush stores a part if there is enough data for one.
func (r *run) flush(ctx context.Context) error {
	if r.buffer.Len() < cmp.Or(r.PartBytes, partBytes) {
		return nil
	}
	return r.part(ctx)
}

// part stores the buffer as the next part, and the checkpoint after it.
func (r *run) part(ctx context.Context) error {
	if len(r.at.Parts) >= maxParts {
		return fault.New(fault.Conflict, "The file is too large to store; export less")
	}
	if r.at.Upload == "" {
		id, err := r.Media.BeginParts(ctx, r.Bucket, r.at.Object, mediaTypes[r.source.Format])
		if err != nil {
			return err
		}
		r.at.Upload, r.saved.Upload = id, id
	}
	at := r.at
	p, err := r.Media.PutPart(ctx, r.Bucket, at.Object, at.Upload, len(at.Parts)+1, r.buffer.Bytes())
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return r.again(ctx, err)
	case err != nil: // the next run continues here
		r.told = time.Time{}
		return errors.Join(err, r.tell(ctx))
	}
	at.Parts, at.Bytes = append(at.Parts[:len(at.Parts):len(at.Parts)], p), at.Bytes+p.Size
	r.buffer.Reset()
	r.at, r.saved, r.further, r.told = at, at, true, time.Time{}
	return nil
}

// again makes the next run start over with another object: the store has lost the upload, or another run wrote to it.
func (r *run) again(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	var b pgx.Batch
	if err := task.QueueProgress(&b, r.held, 0, r.at.Total, place{}); err != nil {
		return errors.Join(cause, err)
	}
	if err := r.Database.Run(ctx, &b); err != nil { // the upload may belong to another worker by now
		return errors.Join(cause, err)
	}
	return errors.Join(cause, r.Media.AbortParts(ctx, r.Bucket, r.at.Object, r.at.Upload))
}

// tell stores the progress of the task, and the checkpoint after the last stored part.
func (r *run) tell(ctx context.Context) error {
	if time.Since(r.told) < tellEvery {
		return nil
	}
	r.told = time.Now()
	total := max(r.at.Total, r.at.Rows)
	var b pgx.Batch
	if err := task.QueueProgress(&b, r.held, r.at.Rows, total, r.saved); err != nil {
		return err
	}
	if err := r.Database.Run(ctx, &b); err != nil {
		return err
	}
	r.Publish(ctx, r.held.Tenant, task.ProgressEvent(r.held, r.at.Rows, total))
	return nil
}

// finish stores the rest and completes the export.
func (r *run) finish(ctx context.Context) (any, error) {
	size := r.at.Bytes + int64(r.buffer.Len())
	if r.at.Upload == "" {
		if err := r.Media.Put(ctx, r.Bucket, r.at.Object, mediaTypes[r.source.Format], r.buffer.Bytes()); err != nil {
			return nil, err
		}
	} else {
		if r.buffer.Len() > 0 {
			if err := r.part(ctx); err != nil {
				return nil, err
			}
		}
		if err := r.tell(ctx); err != nil {
			return nil, err
		}
		if err := r.join(ctx); err != nil {
			return nil, err
		}
	}
	kept, err := r.keep(ctx, size)
	if err == nil && !kept {
		err = errGone
	}
	// Otherwise another run may be writing to the same object.
	if errors.Is(err, errGone) || fault.Is(err, fault.Conflict) {
		r.discard(ctx)
	}
	return Result{r.at.Rows, size}, err
}

// join makes the file of its parts, unless an earlier run has made it.
func (r *run) join(ctx context.Context) error {
	_, err := r.Media.CompleteParts(ctx, r.Bucket, r.at.Object, r.at.Upload, r.at.Parts, false)
	if errors.Is(err, blob.ErrNotFound) {
		found, lookErr := r.Media.Look(ctx, r.Bucket, []string{r.at.Object})
		if lookErr != nil {
			return lookErr
		}
		if len(found) == 1 && found[0].Size == r.at.Bytes {
			return nil
		}
	}
	if err == nil || blob.Unreachable(err) { // the next run tries again
		return err
	}
	return r.again(ctx, err)
}

// keep writes the row of a stored file, unless the export was deleted. Concurrent calls are serialized, so that
// together they stay within the limits. The user must still see the same as at the start.
func (r *run) keep(ctx context.Context, size int64) (bool, error) {
	sight, err := db.GetValue[string](r.asUser(ctx), r.Database, "select app.sight()")
	if err != nil {
		return false, err
	}
	if sight != *r.at.Sight {
		return false, fault.New(fault.Conflict, "What sharing tags let you see changed while the export was made; create another export")
	}
	var b pgx.Batch
	var out *struct {
		Fits  *bool `db:"fits"`  // nil: the export was deleted
		Share bool  `db:"share"` // it fits into the user's share
		Quota bool  `db:"quota"`
		Kept  bool  `db:"kept"`
	}
	b.Queue("select pg_advisory_xact_lock(hashtextextended('longbox exports ' || app.tenant(), 0))")
	db.One(&b, &out, `with e as materialized (
		  select id, coalesce((select sum(o.file_size) from series_export o where o.tenant_id = app.tenant()), 0) + $4::bigint <= $7::bigint as fits,
		    coalesce((select sum(o.file_size) from series_export o where o.tenant_id = app.tenant() and o.account_id = $2), 0) + $4::bigint <= $8::bigint as share
		  from series_export where tenant_id = app.tenant() and id = $1 and account_id = $2 and completed_at is null and error is null for update),
		quota as materialized (select e.id, case when e.fits and e.share then app.keep_rendition($4::bigint) end as room from e),
		kept as (
		  update series_export x set object = $3, file_size = $4, row_count = $5, sight = $6, completed_at = now(), expires_at = now() + `+retention+`
		  from quota q where x.tenant_id = app.tenant() and x.id = q.id and q.room returning x.id)
		select (select fits from e) as fits, coalesce((select share from e), false) as share, coalesce((select room from quota), false) as quota, exists (select from kept) as kept`,
		r.params.ExportID, r.params.UserID, r.at.Object, size, r.at.Rows, sight, r.source.Max, share(r.source.Max))
	if err := r.Database.Run(ctx, &b); err != nil {
		return false, err
	}
	switch {
	case out == nil || out.Fits == nil:
		return false, nil
	case !*out.Fits:
		return false, noRoom(r.source.Max)
	case !out.Share:
		return false, noShare(r.source.Max)
	case !out.Quota:
		return false, fault.Wrap(errNoRoom, fault.Conflict, "There is no room for the file of %d bytes: this library server has reached its storage limit; ask its operator",
			size)
	}
	return out.Kept, nil
}

// discard deletes an unreferenced object; if that fails, the next clean-up does it. If the row was written after all,
// and only the response was lost, the object stays.
func (r *run) discard(ctx context.Context) {
	ctx, cancel := blob.Afterwards(db.In(ctx, db.Tenant(r.held.Tenant)))
	defer cancel()
	named, err := db.GetValue[bool](ctx, r.Database, "select exists (select from series_export where tenant_id = app.tenant() and id = $1 and object = $2)",
		r.params.ExportID, r.at.Object)
	if err == nil && !named {
		err = r.Media.Delete(ctx, r.Bucket, r.at.Object)
	}
	if err != nil {
		slog.Warn("cannot delete the file of a discarded export; the next clean-up deletes it", "export", r.params.ExportID, "error", err)
	}
}

// forget aborts the upload of the stored parts.
func (r *run) forget(ctx context.Context) error {
	if r.at.Upload == "" {
		return nil
	}
	if err := r.Media.AbortParts(ctx, r.Bucket, r.at.Object, r.at.Upload); err != nil {
		return fmt.Errorf("abort upload of export file: %w", err)
	}
	return nil
}

// fail records why the export failed for good.
func (r *run) fail(ctx context.Context, cause error) error {
	message := "An unexpected error occurred; create another export, and if that also fails, ask an administrator"
	if !fault.Is(cause, fault.Internal) && errors.As(cause, new(*fault.Error)) {
		message = fault.From(cause).Message
	}
	var b pgx.Batch
	b.Queue(`update series_export set error = $3
		where tenant_id = app.tenant() and id = $1 and account_id = $2 and completed_at is null and error is null`, r.params.ExportID, r.params.UserID, message)
	if errors.Is(cause, errNoRoom) {
		b.Queue(makeRoom) // for the next export
	}
	return errors.Join(r.Database.Run(ctx, &b), r.forget(ctx))
}
