package operator_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/operator"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

// two creates two filled tenants and a book file that both could reach.
func two(t *testing.T, books int) (r *rig, ours, theirs uuid.UUID) {
	r = newRig(t)
	ours, theirs = r.details("create", "acme").ID, r.details("create", "beta").ID
	r.fill(ours, books)
	r.fill(theirs, 3)
	for table, n := range r.rows(ours) {
		if n == 0 {
			t.Errorf("the test puts nothing into %s: add it to fill", table)
		}
	}
	testkit.WriteFile(t, filepath.Join(r.s3.Dir, "books"), "S/a.cbz", testkit.Comic(t, 1, 2, ""))
	return r, ours, theirs
}

func TestDelete(t *testing.T) {
	t.Parallel()
	r, ours, theirs := two(t, 2500) // more than a batch
	ourRows, theirRows := r.rows(ours), r.rows(theirs)
	d := r.do("delete", "acme", "--confirm", "acme").(*operator.Deletion)
	if !d.Done || len(d.Left) != 0 || d.ID != ours.String() || d.Objects != 4 || d.Bytes != 20 || d.RedisKeys < 3 {
		t.Errorf("%+v", d)
	}
	for table, n := range ourRows {
		if d.Rows[table] < n && table != "library_count" {
			t.Errorf("%s: the report counts %d rows, there were %d", table, d.Rows[table], n)
		}
	}
	gone(t, r, ours)
	for table, n := range r.rows(theirs) {
		if n != theirRows[table] {
			t.Errorf("another tenant had %d rows in %s and has %d", theirRows[table], table, n)
		}
	}
	if n := r.objects(theirs); n != 4 {
		t.Errorf("another tenant has %d objects", n)
	}
	if keys, err := r.Redis.Keys(t.Context(), "lb:{"+theirs.String()+"}:*").Result(); err != nil || len(keys) < 3 {
		t.Errorf("another tenant has the keys %v in Redis, %v", keys, err)
	}
	if _, err := os.Stat(filepath.Join(r.s3.Dir, "books", "S", "a.cbz")); err != nil {
		t.Errorf("a library's file: %v", err)
	}
	refused(t, r, fault.NotFound, "no tenant", "delete", "acme", "--confirm", "acme")
	if made := r.details("create", "acme"); made.ID == ours {
		t.Error("the id came back")
	}
}

// An object that cannot be deleted is reported, and does not block the others.
func TestDeleteBehindWhatIsRefused(t *testing.T) {
	t.Parallel()
	r, ours, _ := two(t, 3)
	r.s3.Keep(ours.String() + "/cover/")
	if _, err := r.Run(t.Context(), []string{"delete", "acme", "--confirm", "acme"}); err == nil || !strings.Contains(err.Error(), "the object is locked") {
		t.Errorf("%v", err)
	}
	r.s3.Counter.Meddle(nil)
	if n := r.objects(ours); n != 1 {
		t.Errorf("%d objects are left", n)
	}
	if d := r.do("delete", "acme", "--confirm", "acme").(*operator.Deletion); !d.Done || d.Objects != 4 {
		t.Errorf("%+v", d)
	}
	gone(t, r, ours)
}

// gone fails unless nothing of the tenant is left anywhere.
func gone(t *testing.T, r *rig, id uuid.UUID) {
	t.Helper()
	for table, n := range r.rows(id) {
		if n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
	if n := r.objects(id); n != 0 {
		t.Errorf("%d objects are left", n)
	}
	keys, err := r.Redis.Keys(context.Background(), "*"+id.String()+"*").Result()
	if err != nil || len(keys) != 0 {
		t.Errorf("keys are left in Redis: %v, %v", keys, err)
	}
}

// Interrupted after every few statements and called again, the deletion has the same result and counts.
func TestDeleteGoesOn(t *testing.T) {
	t.Parallel()
	r, ours, _ := two(t, 50)
	rows := r.rows(ours)
	var d *operator.Deletion
	cuts := 0
	for cutAfter := int64(1); d == nil; cutAfter++ {
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			defer cancel()
			start := statements(r)
			for ctx.Err() == nil && statements(r)-start < cutAfter { // so it is interrupted anywhere
			}
		}()
		out, err := r.Run(ctx, []string{"delete", "acme", "--confirm", "acme"})
		cancel()
		if err == nil {
			d = out.(*operator.Deletion)
			break
		}
		cuts++
		if s := r.details("show", "acme").Status; s != "deleting" && s != "active" {
			t.Fatalf("status %s after a cut", s)
		}
		if cutAfter == 400 {
			t.Fatal("it never ends")
		}
	}
	t.Logf("%d cuts", cuts)
	if cuts < 3 {
		t.Errorf("only %d cuts", cuts)
	}
	gone(t, r, ours)
	for _, table := range []string{"book", "page_index", "progress", "series", "account", "task"} {
		if d.Rows[table] != rows[table] {
			t.Errorf("%s: %d rows counted, there were %d", table, d.Rows[table], rows[table])
		}
	}
}

// statements counts the transactions of the deletion, by its records.
func statements(r *rig) (n int64) {
	err := r.db.Owner.Pool().QueryRow(context.Background(), `select coalesce((select count(*) + 1 from tenant, jsonb_each(deletion -> 'rows') where name = 'acme'), 0)`).Scan(&n)
	if err != nil {
		return 1 << 40
	}
	return n
}

// Nothing is deleted while a process may still use the cached state of a tenant that was not blocked.
func TestDeleteWaitsUntilAllKnow(t *testing.T) {
	t.Parallel()
	r, ours, _ := two(t, 5)
	r.Settle = time.Hour
	rows := r.rows(ours)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := r.Run(ctx, []string{"delete", "acme", "--confirm", "acme"})
		ended <- err
	}()
	testkit.Eventually(t, 10*time.Second, func() bool {
		return r.number("select count(*) from tenant where id = $1 and status = 'deleting'", ours) == 1
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it did not wait: %v", err)
	}
	for table, n := range r.rows(ours) {
		if n < rows[table] {
			t.Errorf("%s: %d rows of %d are left", table, n, rows[table])
		}
	}
}

// A tenant that is resumed while its deletion starts does not come back with half of its data.
func TestResumeIsLateForDelete(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.details("create", "acme").ID
	r.do("suspend", "acme")
	tx, err := r.db.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "update tenant set status = 'deleting' where id = $1", id); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := r.Run(context.Background(), []string{"resume", "acme"})
		ended <- err
	}()
	r.db.AwaitLock(t)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if s := r.details("show", "acme").Status; s != "deleting" {
		t.Errorf("the tenant is %s", s)
	}
}

// An invocation whose time is up says so, and loses nothing.
func TestDeleteOutOfTime(t *testing.T) {
	t.Parallel()
	r, ours, _ := two(t, 5)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // less than the spare time
	defer cancel()
	out, err := r.Run(ctx, []string{"delete", "acme", "--confirm", "acme"})
	if err != nil || out.(*operator.Deletion).Done || !strings.Contains(out.(*operator.Deletion).Message, "call delete again") {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, args := range []string{"resume acme", "suspend acme", "export acme", "set-quotas acme --books 1", "rotate-keys acme"} {
		refused(t, r, fault.Conflict, "is being deleted", strings.Fields(args)...)
	}
	r.do("delete", "acme", "--confirm", "acme")
	gone(t, r, ours)
}

// An unfinished export leaves no file with its name, not even temporarily.
func TestUnfinishedExport(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.db.Tenant(t, "acme")
	lock, err := r.db.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback(context.Background()) }()
	if _, err := lock.Exec(t.Context(), "lock table tag"); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	names := func(when string, want int) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		if err != nil || len(files) != want || slices.Contains(files, filepath.Join(folder, "acme.zip")) {
			t.Errorf("%s: %q, %v", when, files, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := r.Run(ctx, []string{"export", "acme", "--output", filepath.Join(folder, "acme.zip")})
		done <- err
	}()
	r.db.AwaitLock(t)
	names("while it is written", 1)
	cancel()
	if err := <-done; err == nil {
		t.Error("it has ended well")
	}
	names("afterwards", 0)
}

// An export that an invocation has no time for says what to do. What an earlier invocation has left is deleted.
func TestExportWithoutTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.db.Tenant(t, "acme")
	r.Temp = t.TempDir()
	for _, name := range []string{"longbox-export-1", "other"} {
		if err := os.WriteFile(filepath.Join(r.Temp, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := r.Run(ctx, []string{"export", "acme"}); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "--output") {
		t.Errorf("%v", err)
	}
	if files, err := os.ReadDir(r.Temp); err != nil || len(files) != 1 || files[0].Name() != "other" {
		t.Errorf("%v, %v", files, err)
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	r, ours, _ := two(t, 30)
	rows := r.rows(ours)
	file := filepath.Join(t.TempDir(), "acme.zip")
	out := r.do("export", "acme", "--output", file).(*operator.Exported)
	data, err := os.ReadFile(file)
	if err != nil || int64(len(data)) != out.Bytes {
		t.Fatalf("%d bytes, %v, told %d", len(data), err, out.Bytes)
	}
	lines := read(t, data)
	for table, n := range rows {
		if got := int64(len(lines[table])); got != n || out.Rows[table] != n {
			t.Errorf("%s: %d lines, told %d, %d rows", table, got, out.Rows[table], n)
		}
	}
	if b := lines["book"][0]; b["tenant_id"] != ours.String() || b["format"] != "cbz" || b["size"].(float64) != 1000 {
		t.Errorf("a book: %v", b)
	}
	secrets := map[string]string{"account": "password_hash", "refresh_token": "hash", "verification_token": "hash", "api_key": "hash", "tenant": "secret"}
	for table, column := range secrets {
		if _, ok := lines[table][0][column]; ok {
			t.Errorf("%s.%s is in the export", table, column)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	refused(t, r, fault.BadRequest, "output: ", "export", "acme", "--output", file)

	stored := r.do("export", "acme", "--with-secrets").(*operator.Exported)
	res, err := http.Get(stored.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if data, err = io.ReadAll(res.Body); err != nil || res.StatusCode != 200 || int64(len(data)) != stored.Bytes {
		t.Fatalf("status %d, %d bytes, told %d: %v", res.StatusCode, len(data), stored.Bytes, err)
	}
	if life := time.Until(*stored.ExpiresAt); life > 5*time.Minute || life < 4*time.Minute {
		t.Errorf("the address lives for %s", life)
	}
	if !strings.HasPrefix(stored.Object, "export/"+ours.String()+"/") {
		t.Errorf("stored as %s", stored.Object)
	}
	lines = read(t, data)
	for table, column := range secrets {
		if v, _ := lines[table][0][column].(string); v == "" {
			t.Errorf("%s.%s is not in the export with secrets", table, column)
		}
	}
	bare, _, _ := strings.Cut(stored.URL, "?")
	if res, err := http.Get(bare); err != nil || res.StatusCode != 403 {
		t.Errorf("without its signature: %v, %v", res.Status, err)
	}
}

// read returns every table of an export, checked against its manifest.
func read(t *testing.T, data []byte) map[string][]map[string]any {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	open := func(name string) []byte {
		f, err := z.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		content, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	var m operator.Manifest
	if err := json.Unmarshal(open("manifest.json"), &m); err != nil || m.Format != 1 || m.Tenant != "acme" {
		t.Fatalf("manifest %+v: %v", m, err)
	}
	out := map[string][]map[string]any{}
	for _, table := range m.Tables {
		columns := map[string]bool{}
		for _, c := range table.Columns {
			columns[c.Name] = !c.Omitted
		}
		rows := []map[string]any{}
		for line := range bytes.Lines(open(table.File)) {
			var row map[string]any
			if err := json.Unmarshal(line, &row); err != nil {
				t.Fatalf("%s: %s: %v", table.File, line, err)
			}
			for name := range row {
				if !columns[name] {
					t.Fatalf("%s: %s is not in the manifest", table.Name, name)
				}
			}
			rows = append(rows, row)
		}
		if int64(len(rows)) != table.Rows {
			t.Errorf("%s: %d rows, the manifest says %d", table.Name, len(rows), table.Rows)
		}
		out[table.Name] = rows
	}
	return out
}

func TestRotateKeys(t *testing.T) {
	t.Parallel()
	r, ours, theirs := two(t, 1)
	secret := func() (s []byte) {
		if err := r.db.Owner.Pool().QueryRow(context.Background(), "select secret from tenant where id = $1", ours).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	var other string // tenant, whose secret stays
	if err := r.db.Owner.Pool().QueryRow(t.Context(), "select secret::text || secret_at from tenant where id = $1", theirs).Scan(&other); err != nil {
		t.Fatal(err)
	}
	before := secret()
	r.exec("insert into rendition_usage (tenant_id, bytes) values ($1, 20) on conflict (tenant_id) do update set bytes = 20", ours)
	if u := r.details("show", "acme").Usage; u.RenditionBytes != nil || u.MeasuredAt != nil {
		t.Errorf("%+v is told of a tenant without a quota, which is not measured", u)
	}
	r.exec("update tenant set max_rendition_bytes = 100 where id = $1", ours)
	got := r.details("rotate-keys", "acme")
	if n := got.Usage.RenditionBytes; n == nil || *n != 5 {
		t.Errorf("%v bytes count towards the quota, want the 5 that were not cleared", n)
	}
	if c := got.Cleared; c == nil || c.Objects != 3 || c.Bytes != 15 || !c.Done || !*got.Announced {
		t.Errorf("cleared %+v", c)
	}
	after := secret()
	if len(after) != 32 || bytes.Equal(before, after) {
		t.Error("the secret is the old one")
	}
	if r.number("select count(*) from tenant where id = $1 and secret::text || secret_at = $2", theirs, other) != 1 {
		t.Error("another tenant has a new secret")
	}
	if r.objects(ours) != 1 || r.objects(theirs) != 4 {
		t.Error("an export or another tenant's objects are gone")
	}
	// Objects stored since, under the new secret, stay when the clearing continues.
	r.Settle = time.Nanosecond
	r.exec("update tenant set secret_at = now() - interval '1 hour' where id = $1", ours)
	if err := r.Media.Put(context.Background(), r.Bucket, "page/"+ours.String()+"/ab/new", "image/jpeg", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if c := r.details("rotate-keys", "acme", "--resume").Cleared; c.Objects != 0 || !bytes.Equal(after, secret()) {
		t.Errorf("going on: %+v", c)
	}
	if r.objects(ours) != 2 {
		t.Error("a new page rendition is gone")
	}
}

// Objects deleted beside one that cannot be deleted no longer count towards the quota.
func TestRotateKeysBehindWhatIsRefused(t *testing.T) {
	t.Parallel()
	r, ours, _ := two(t, 1)
	r.exec("insert into rendition_usage (tenant_id, bytes) values ($1, 20) on conflict (tenant_id) do update set bytes = 20", ours)
	counted := func() (n int64) {
		if err := r.db.Owner.Pool().QueryRow(t.Context(), "select bytes from rendition_usage where tenant_id = $1", ours).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	r.s3.Keep(ours.String() + "/cover/")
	if _, err := r.Run(t.Context(), []string{"rotate-keys", "acme"}); err == nil || !strings.Contains(err.Error(), "the object is locked") {
		t.Errorf("%v", err)
	}
	if n := counted(); n != 10 {
		t.Errorf("%d bytes count towards the quota, want those of the cover and the export", n)
	}
	r.s3.Counter.Meddle(nil)
	if c := r.details("rotate-keys", "acme", "--resume").Cleared; !c.Done || c.Objects != 1 || counted() != 5 {
		t.Errorf("going on: %+v, %d bytes", c, counted())
	}
}
