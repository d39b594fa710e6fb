package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/operator"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/fault"
)

func TestCreateAndChange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	made := r.details("create", "acme", "--host", "Acme.Example.org.", "--host", "acme.example.org", "--root", "/comics=books/acme",
		"--root", "s3://archive/acme/", "--admin", "boss", "--books", "100", "--scans", "-1", "--requests", "20")
	if made.Status != "active" || strings.Join(made.Hosts, " ") != "acme.example.org" || strings.Join(made.Roots, " ") != "/comics=books/acme/ s3://archive/acme/" {
		t.Errorf("created: %+v", made)
	}
	if q := made.Quotas; *q.Books != 100 || q.Scans != nil || q.RenditionBytes != nil || *q.Requests != 20 {
		t.Errorf("quotas: %+v", q)
	}
	if made.Admin == nil || len(made.Admin.Password) < 20 || made.Admin.Email != "boss@localhost.localdomain" || made.Usage.Users != 1 {
		t.Fatalf("admin: %+v, %+v", made.Admin, made.Usage)
	}
	var hash, role string
	if err := r.db.Owner.Pool().QueryRow(context.Background(), "select password_hash, role from account where tenant_id = $1", made.ID).Scan(&hash, &role); err != nil {
		t.Fatal(err)
	}
	if ok, err := auth.CheckPassword(hash, made.Admin.Password); !ok || err != nil || role != "admin" {
		t.Errorf("the password shown does not open the account: %v, role %s", err, role)
	}
	if shown := r.details("show", "acme"); shown.Admin != nil {
		t.Error("the password is shown twice")
	}

	r.do("create", "beta", "--books", "7")
	got := r.details("set-quotas", "acme", "--books", "-1", "--rendition-bytes", "0")
	if q := got.Quotas; q.Books != nil || *q.RenditionBytes != 0 || *q.Requests != 20 {
		t.Errorf("quotas: %+v", q)
	}
	if q := r.details("show", "beta").Quotas; q.Books == nil || *q.Books != 7 || q.RenditionBytes != nil || q.Scans != nil || q.Requests != nil {
		t.Errorf("another tenant's quotas: %+v", q)
	}
	got = r.details("add-hosts", "acme", "--host", "b.example.org", "--host", "a.example.org", "--host", "acme.example.org")
	if strings.Join(got.Hosts, " ") != "a.example.org acme.example.org b.example.org" || !*got.Announced {
		t.Errorf("hosts: %v", got.Hosts)
	}
	if got = r.details("remove-hosts", "acme", "--host", "acme.example.org"); strings.Join(got.Hosts, " ") != "a.example.org b.example.org" {
		t.Errorf("hosts: %v", got.Hosts)
	}
	if got = r.details("grant-roots", "acme", "--root", "/manga=books/manga", "--root", "/comics=books/other"); strings.Join(got.Roots, " ") != "/comics=books/other/ /manga=books/manga/ s3://archive/acme/" {
		t.Errorf("roots: %v", got.Roots)
	}
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $1, 'Manga', '/manga/new', 'books', 'manga/new/', 'series_volume', 'filename', 'file_order')`, made.ID)
	refused(t, r, fault.Conflict, `library "Manga"`, "revoke-roots", "acme", "--path", "/manga")
	if got = r.details("revoke-roots", "acme", "--path", "/comics/", "--path", "s3://archive/acme/"); strings.Join(got.Roots, " ") != "/manga=books/manga/" {
		t.Errorf("roots: %v", got.Roots)
	}

	r.do("create", "gamma")
	if l := r.do("list", "--limit", "2").(operator.Tenants); len(l.Tenants) != 2 || l.Tenants[0].Name != "acme" || !l.More {
		t.Errorf("list: %+v", l)
	}
	if l := r.do("list", "--after", "beta").(operator.Tenants); len(l.Tenants) != 1 || l.Tenants[0].Name != "gamma" || l.More {
		t.Errorf("list: %+v", l)
	}
}

// A library's path leads to its bucket and prefix: it follows its root to others, and no other change takes it away.
func TestLibrariesFollowTheirRoot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	made := r.details("create", "acme", "--root", "/comics=books/acme", "--root", "/comics/old=archive", "--root", "/manga=books/manga")
	grant := func(moved string, roots ...string) {
		t.Helper()
		args := []string{"grant-roots", "acme"}
		for _, root := range roots {
			args = append(args, "--root", root)
		}
		if got := r.details(args...); strings.Join(got.Moved, " ") != moved {
			t.Errorf("%v moved %q, want %q", roots, got.Moved, moved)
		}
	}
	library := func(name, path, bucket, prefix string) {
		r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
			values ($1, gen_random_uuid(), $2, $3, $4, $5, 'series_volume', 'filename', 'file_order')`, made.ID, name, path, bucket, prefix)
	}
	library("New", "/comics/new", "books", "acme/new/")
	library("Old", "/comics/old/a", "archive", "a/")
	library("Stray", "/manga/a", "before", "manga/a/") // its root was replaced once
	library("S3", "s3://archive/c", "archive", "c/")
	refused(t, r, fault.Conflict, `roots: library "New"`, "grant-roots", "acme", "--root", "/fine=books/fine", "--root", "/comics/new=books/deeper")
	// Otherwise /comics would lead elsewhere.
	refused(t, r, fault.Conflict, `paths: library "Old"`, "revoke-roots", "acme", "--path", "/comics/old")
	refused(t, r, fault.Conflict, `roots: library "S3"`, "grant-roots", "acme", "--root", "/comics/old=elsewhere") // its path names the bucket
	grant("", "/comics=books/acme", "/comics/empty=books/empty")
	grant("", "/comics/empty=books/void", "/manga=before/manga") // the latter root is served again
	r.exec(`insert into task (tenant_id, id, type, status, library_id, done)
		select tenant_id, id, 'analyze_book', 'pending', id, false from library where name = 'New'`)
	refused(t, r, fault.Conflict, `roots: a task of library "New" at /comics/new is pending`, "grant-roots", "acme", "--root", "/comics=other/acme")
	grant("Stray", "/manga=other/m")                                    // the other library's task is no obstacle
	r.exec("update task set scheduled_for = now() + interval '1 hour'") // put off
	grant("New", "/comics=other/acme/", "/manga=other/m")
	got := r.details("show", "acme")
	if roots := strings.Join(got.Roots, " "); roots != "/comics=other/acme/ /comics/empty=books/void/ /comics/old=archive/ /manga=other/m/" {
		t.Errorf("roots: %s", roots)
	}
	var places string
	err := r.db.Owner.Pool().QueryRow(t.Context(), `select string_agg(name || ' ' || path || ' ' || bucket || '/' || prefix, ', ' order by name)
		from library where tenant_id = $1`, made.ID).Scan(&places)
	if want := "New /comics/new other/acme/new/, Old /comics/old/a archive/a/, S3 s3://archive/c archive/c/, Stray /manga/a other/m/a/"; err != nil || places != want {
		t.Errorf("the libraries lie in %s, want %s: %v", places, want, err)
	}
}

// Creating a library locks its root: the operator waits, and then sees the library.
func TestRootsAreNotTakenWhileALibraryIsMade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	made := r.details("create", "acme", "--root", "/comics=books/acme", "--root", "/manga=books/manga")
	for folder, command := range map[string][]string{
		"/comics": {"revoke-roots", "acme", "--path", "/comics"}, "/manga": {"grant-roots", "acme", "--root", "/manga=books/other"},
	} {
		tx, err := r.db.Owner.Pool().Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		if _, err := tx.Exec(t.Context(), `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
			select tenant_id, gen_random_uuid(), path, path, bucket, prefix, 'series_volume', 'filename', 'file_order'
			from library_root where tenant_id = $1 and path = $2 for share`, made.ID, folder); err != nil {
			t.Fatal(err)
		}
		answer := make(chan error, 1)
		go func() {
			_, err := r.Run(context.Background(), command)
			answer <- err
		}()
		r.db.AwaitLock(t)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		err = <-answer
		if folder == "/manga" && err == nil {
			continue // the library follows, see below
		}
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), `library "`+folder+`" at `+folder) {
			t.Errorf("%v: %v", command, err)
		}
	}
	if got := r.details("show", "acme"); strings.Join(got.Roots, " ") != "/comics=books/acme/ /manga=books/other/" {
		t.Errorf("roots: %v", got.Roots)
	}
	if n := r.number("select count(*) from library where path = '/manga' and prefix = 'other/'"); n != 1 {
		t.Error("a library that was made meanwhile is not where its root is")
	}
}

// refused runs a command line that must fail with a code and a text.
func refused(t *testing.T, r *rig, code fault.Code, text string, args ...string) {
	t.Helper()
	_, err := r.Run(context.Background(), args)
	if !fault.Is(err, code) || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "SQLSTATE") {
		t.Errorf("operator %v: %v, want code %d and %q in the words of a person", args, err, code, text)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for line, text := range map[string]string{"--help": "set-quotas", "create --help": "usage: operator create <name>\n", "set-quotas --help": "--rendition-bytes", "delete acme -h": "--confirm"} {
		_, err := (&operator.Operator{}).Run(t.Context(), strings.Fields(line))
		if help := operator.Asked(""); !errors.As(err, &help) || !strings.Contains(string(help), text) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.do("create", "acme", "--host", "acme.example.org")
	r.do("create", "beta", "--host", "beta.example.org")
	for _, c := range []struct {
		code fault.Code
		text string
		args string
	}{
		{fault.BadRequest, "usage: operator", ""},
		{fault.BadRequest, "command: must be one of create, list", "destroy acme"},
		{fault.BadRequest, "name: must be 1 to 63", "create Acme"},
		{fault.BadRequest, "name: must be 1 to 63", "create"},
		{fault.BadRequest, "name: must be 1 to 63", "show a_b"},
		{fault.NotFound, `name: there is no tenant "nobody"`, "show nobody"},
		{fault.NotFound, "there is no tenant", "suspend nobody"},
		{fault.NotFound, "there is no tenant", "delete nobody --confirm nobody"},
		{fault.Conflict, `there is already a tenant "acme"`, "create acme"},
		{fault.Conflict, "hosts: acme.example.org belongs to the tenant acme", "create gamma --host acme.example.org"},
		{fault.Conflict, "hosts: beta.example.org belongs to the tenant beta", "add-hosts acme --host beta.example.org"},
		{fault.Conflict, "hosts: beta belongs to the tenant beta", "add-hosts acme --host beta"},
		{fault.Conflict, "hosts: acme.example.org", "create gamma --host x.example.org --host acme.example.org"},
		{fault.BadRequest, "hosts: ", "add-hosts acme --host https://x.example.org"},
		{fault.BadRequest, "hosts: ", "add-hosts acme --host x.example.org:8080"},
		{fault.BadRequest, "hosts: is required", "add-hosts acme"},
		{fault.BadRequest, "at most 50", "add-hosts acme" + many(" --host h%.example.org", 51)},
		{fault.BadRequest, "books: must be 0", "set-quotas acme --books -2"},
		{fault.BadRequest, "requests: must be 1", "set-quotas acme --requests 0"},
		{fault.BadRequest, "books: at least one", "set-quotas acme"},
		{fault.BadRequest, "must be a whole number", "set-quotas acme --books many"},
		{fault.BadRequest, "roots: ", "grant-roots acme --root comics=books"},
		{fault.BadRequest, "roots: ", "grant-roots acme --root /comics"},
		{fault.BadRequest, "roots: ", "grant-roots acme --root /a/../b=books"},
		{fault.BadRequest, "paths: ", "revoke-roots acme --path /comics"},
		{fault.BadRequest, "admin: is required with adminPassword", "create gamma --admin-password x"},
		{fault.BadRequest, "adminPassword: ", "create gamma --admin boss --admin-password short"},
		{fault.BadRequest, "adminEmail: ", "create gamma --admin boss --admin-email nowhere"},
		{fault.BadRequest, "confirm: must repeat", "delete acme"},
		{fault.BadRequest, "resume: the tenant's keys were never rotated", "rotate-keys acme --resume"},
		{fault.BadRequest, "limit: ", "list --limit 1001"},
		{fault.BadRequest, "unexpected argument", "show acme beta"},
		{fault.BadRequest, "not defined", "show acme --force"},
		{fault.BadRequest, "output: ", "export acme --output /"},
	} {
		refused(t, r, c.code, c.text, strings.Fields(c.args)...)
	}
	if n := r.number("select count(*) from tenant where name = 'gamma'"); n != 0 {
		t.Error("a refused create left a tenant")
	}
}

func many(format string, n int) string {
	out := ""
	for i := range n {
		out += strings.Replace(format, "%", string(rune('a'+i/26))+string(rune('a'+i%26)), 1)
	}
	return out
}

// The same commands as events of an invocation.
func TestInvoke(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := context.Background()
	out, err := r.Invoke(ctx, json.RawMessage(`{"command": "create", "input": {"name": "acme", "hosts": ["acme.example.org"], "books": 5}}`))
	if err != nil || out.(*operator.Details).Name != "acme" || *out.(*operator.Details).Quotas.Books != 5 {
		t.Fatalf("%+v, %v", out, err)
	}
	if out, err = r.Invoke(ctx, json.RawMessage(`{"command": "list"}`)); err != nil || len(out.(operator.Tenants).Tenants) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	for payload, text := range map[string]string{
		`{"command": "create", "input": {"name": "b", "host": "x"}}`:  "host: is unknown",
		`{"command": "create", "input": {"name": "b", "books": "5"}}`: "books: must be a whole number",
		`{"command": "create", "input": {"name": "b", "hosts": "c"}}`: "hosts: must be a list of texts",
		`{"command": ["list"]}`:                 "command: must be a text",
		`["list"]`:                              "the event must be",
		`{"command": "create", "input": ["b"]}`: "the event must be",
		`{"Records": []}`:                       "Records: is unknown",
		`{"input": {}}`:                         "command: must be one of",
		`null`:                                  "command: must be one of",
		`{"command": "list"} {}`:                "one JSON object",
		`{`:                                     "the event must be",
	} {
		if _, err := r.Invoke(ctx, json.RawMessage(payload)); !fault.Is(err, fault.BadRequest) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", payload, err, text)
		}
	}
}

func TestSuspend(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.details("create", "acme").ID
	other := r.details("create", "beta").ID
	for _, tenant := range []any{id, other} {
		r.exec(`insert into task (tenant_id, id, type, status, attempts, lease_until, lease_epoch, locked_by, done) values
			($1, gen_random_uuid(), 'a', 'running', 1, now() + interval '1 minute', 1, 'w', false), ($1, gen_random_uuid(), 'a', 'running', 3, null, 1, null, true)`, tenant)
	}
	got := r.details("suspend", "acme")
	if got.Status != "suspended" || *got.GivenBack != 1 || !*got.Announced {
		t.Errorf("%+v", got)
	}
	if n := r.number("select count(*) from task where tenant_id = $1 and status = 'pending' and attempts = 0 and locked_by is null and lease_until is null", id); n != 1 {
		t.Errorf("%d tasks wait", n)
	}
	if n := r.number("select count(*) from task where tenant_id = $1 and status = 'running'", other); n != 2 {
		t.Errorf("another tenant has %d running tasks", n)
	}
	again := r.details("suspend", "acme")
	if !again.StatusAt.Equal(got.StatusAt) {
		t.Error("suspending again counts as a new suspension")
	}
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy, is_active, scan_mode)
		select $1, gen_random_uuid(), a, '/' || a, 'b', a || '/', 'flat', 'filename', 'smart', a <> 'away', 'deep' from unnest('{one,two,away}'::text[]) a`, id)
	for range 2 {
		if got := r.details("resume", "acme"); got.Status != "active" {
			t.Errorf("%+v", got)
		}
		if n := r.number("select count(*) from task t join scan s on s.tenant_id = t.tenant_id and s.id = t.id where t.status = 'pending' and s.mode = 'normal'"); n != 2 {
			t.Errorf("%d scans after what was announced to nobody", n)
		}
	}
}
