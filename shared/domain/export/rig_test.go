package export_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/export"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const at = "/api/v1/user/exports/series"

// rig is a server and a maker of files, with a small library.
type rig struct {
	*testkit.Server
	t       *testing.T
	s3      *testkit.S3
	maker   *export.Maker
	library uuid.UUID
	series  map[string]uuid.UUID
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, s3: testkit.StartS3(t, "books"), library: uuid.New(), series: map[string]uuid.UUID{}}
	r.Server = testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		export.Routes(a, d, nil)
		export.FileRoutes(a, d, r.s3.Config.Media(), r.s3.Config.MediaBucket, 8<<20)
	})
	r.maker = &export.Maker{Database: r.DB.App, Media: r.s3.Config.Media(), Bucket: r.s3.Config.MediaBucket, Publish: func(context.Context, uuid.UUID, ...events.Event) {}}
	r.addLibrary(r.library, "Comics")
	return r
}

func (r *rig) exec(sql string, args ...any) { r.t.Helper(); r.DB.Exec(r.t, sql, args...) }

func (r *rig) addLibrary(id uuid.UUID, name string) {
	r.t.Helper()
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, $3, '/' || $3, 'books', '', 'series_volume', 'metadata_first', 'smart')`, r.One, id, name)
}

// addSeries adds a series with that many books.
func (r *rig) addSeries(library uuid.UUID, title string, books int) uuid.UUID {
	r.t.Helper()
	id := uuid.New()
	r.series[title] = id
	r.exec("insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, $4, $4, $4, $4, lower($4))", r.One, id, library, title)
	r.exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, number, page_count, analyzed)
		select $1, gen_random_uuid(), $2, $3, $4 || '/' || n || '.cbz', 100, now(), 'cbz', $4 || ' ' || n, $4 || ' ' || n, 'x', nullif(n, 3), 20, true from generate_series(1, $5::integer) n`,
		r.One, library, id, title, books)
	return id
}

// ask requests an export and returns its id.
func (r *rig) ask(c *testkit.Client, body string) uuid.UUID {
	r.t.Helper()
	var e struct {
		ID     uuid.UUID
		Status string
	}
	c.Do("POST", at, body).Want(201).JSON(&e)
	if e.Status != "pending" {
		r.t.Errorf("asked for: %+v", e)
	}
	return e.ID
}

// claim claims the task of an export, as a worker does.
func (r *rig) claim(id uuid.UUID) task.Held {
	r.t.Helper()
	h := task.Held{Tenant: r.One, ID: id, Type: task.ExportSeries, Attempts: 1, Allowed: 3}
	if err := r.DB.Owner.Pool().QueryRow(r.t.Context(), `update task set status = 'running', lease_epoch = lease_epoch + 1, started_at = now()
		where tenant_id = $1 and id = $2 and type = $3 and status = 'pending' returning params, lease_epoch, place`, r.One, id, h.Type).Scan(&h.Params, &h.Epoch, &h.Place); err != nil {
		r.t.Fatal(err)
	}
	return h
}

// run runs the task of an export to its end.
func (r *rig) run(id uuid.UUID) error {
	r.t.Helper()
	h := r.claim(id)
	_, err := r.maker.Make(db.In(r.t.Context(), h.Scope()), h)
	r.exec("update task set status = case when $2 then 'completed' else 'failed' end, completed_at = now() where id = $1", id, err == nil)
	return err
}

// made requests an export, runs it and returns the file.
func (r *rig) made(c *testkit.Client, body string) string {
	r.t.Helper()
	id := r.ask(c, body)
	if err := r.run(id); err != nil {
		r.t.Fatal(err)
	}
	return string(c.Do("GET", at+"/"+id.String()+"/download", nil).Want(200).Body)
}

func (r *rig) number(sql string, args ...any) (n int64) {
	r.t.Helper()
	if err := r.DB.Owner.Pool().QueryRow(r.t.Context(), sql, args...).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// objects returns the keys of the files in the store, without the tenant.
func (r *rig) objects() (keys []string) {
	r.t.Helper()
	for page, err := range r.s3.Config.Media().List(r.t.Context(), r.s3.Config.MediaBucket, export.Folder(r.One), "") {
		if err != nil {
			r.t.Fatal(err)
		}
		for _, o := range page {
			keys = append(keys, strings.TrimPrefix(o.Key, export.Folder(r.One)))
		}
	}
	return keys
}

// clean runs a clean-up.
func (r *rig) clean() (export.Cleaned, error) {
	r.t.Helper()
	h := task.Held{Tenant: r.One, ID: uuid.New(), Type: task.CleanUpExports, Epoch: 1, Params: json.RawMessage(`{}`)}
	r.exec("insert into task (tenant_id, id, type, status, lease_epoch) values ($1, $2, $3, 'running', 1)", r.One, h.ID, h.Type)
	out, err := r.maker.Clean(db.In(r.t.Context(), h.Scope()), h)
	r.exec("delete from task where id = $1", h.ID)
	got, _ := out.(export.Cleaned)
	return got, err
}

// hide lets a user see only series with a new tag or, with deny, only the others; it returns the tag.
func (r *rig) hide(user uuid.UUID, mode string, series ...uuid.UUID) uuid.UUID {
	r.t.Helper()
	tag := uuid.New()
	r.exec("insert into sharing_tag (tenant_id, id, name) values ($1, $2, $3)", r.One, tag, tag.String())
	for _, s := range series {
		r.exec("insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $3)", r.One, s, tag)
	}
	r.exec("insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, $4)", r.One, tag, user, mode)
	return tag
}

func body(format, kind, fields, more string) string {
	return fmt.Sprintf(`{"format":%q,"exportType":%q,"fields":[%s],"bookFields":[%[3]s]%s}`, format, kind, fields, more)
}
