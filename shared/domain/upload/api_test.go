package upload_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/domain/upload"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

type object = map[string]any

type rig struct {
	*testing.T
	*testkit.Server
	s3      *testkit.S3
	store   *blob.Store
	library uuid.UUID
	base    string
}

func newRig(t *testing.T, c upload.Config) *rig {
	r := &rig{T: t, s3: testkit.StartS3(t, "books")}
	cfg := r.s3.Config
	r.store = cfg.Library()
	r.Server = testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		u := &upload.Uploader{Database: d, Store: r.store, Config: c}
		u.Routes(a)
		library.Routes(a, d, func(context.Context, uuid.UUID, ...events.Event) {}, r.store, nil, func(context.Context, uuid.UUID) {}, u.Abandon)
	})
	r.library = r.add(r.One, "s3://books/lib", "lib/")
	r.base = "/api/v1/libraries/" + r.library.String() + "/uploads"
	return r
}

func (r *rig) add(tenant uuid.UUID, path, prefix string) uuid.UUID {
	id := uuid.New()
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy, excluded_patterns)
		values ($1, $2, $3, $4, 'books', $5, 'series_volume', 'filename', 'smart', 'skip')`, tenant, id, id.String(), path, prefix)
	return id
}

func (r *rig) exec(sql string, args ...any) {
	r.Helper()
	r.DB.Exec(r, sql, args...)
}

// put sends a body to an address with the required headers; change may alter the request.
func (r *rig) put(address string, headers map[string]string, body []byte, change func(*http.Request)) (status int, answer string) {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPut, address, bytes.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	if change != nil {
		change(req)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		r.Fatal(err)
	}
	return res.StatusCode, string(data)
}

func (r *rig) content(key string) []byte {
	r.Helper()
	body, _, err := r.store.Get(r.Context(), "books", key)
	if err != nil {
		return nil
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		r.Fatal(err)
	}
	return data
}

func files(overwrite bool, all ...object) object { return object{"files": all, "overwrite": overwrite} }

var config = upload.Config{MaxBytes: 100 << 20, SingleBytes: 1 << 20, Life: time.Minute}

func TestOnePut(t *testing.T) {
	t.Parallel()
	r := newRig(t, config)
	user := r.User(t, "one", "maintainer")
	begin := func(size int, path string) upload.Address {
		t.Helper()
		var got upload.Begun
		user.Do("POST", r.base, files(false, object{"path": path, "size": size, "contentType": "application/zip"})).Want(201).JSON(&got)
		return got.Files[0]
	}
	data := testkit.Comic(t, 1, 2, "")
	path := "Sérieß/日本 #1 + 100%.cbz"
	a := begin(len(data), path)
	if life := time.Until(a.ExpiresAt); life > time.Minute || life < 30*time.Second || a.Method != "PUT" {
		t.Errorf("%+v", a)
	}
	refused := func(what string, address string, body []byte, change func(*http.Request)) {
		t.Helper()
		if status, answer := r.put(address, a.Headers, body, change); status/100 != 4 {
			t.Errorf("%s: %d %s", what, status, answer)
		}
		if r.content("lib/"+path) != nil {
			t.Fatalf("%s: the file is there", what)
		}
	}
	at, err := url.Parse(*a.URL)
	if err != nil {
		t.Fatal(err)
	}
	other := *at
	other.Path, other.RawPath = "/books/lib/other.cbz", ""
	refused("another key", other.String(), data, nil)
	other.Path = "/books/elsewhere/a.cbz"
	refused("outside the library", other.String(), data, nil)
	refused("a longer body", *a.URL, append(bytes.Clone(data), 'x'), nil)
	refused("a shorter body", *a.URL, data[:len(data)-1], nil)
	refused("another type", *a.URL, data, func(q *http.Request) { q.Header.Set("Content-Type", "text/html") })
	refused("no type", *a.URL, data, func(q *http.Request) { q.Header.Del("Content-Type") })
	refused("without the condition", *a.URL, data, func(q *http.Request) { q.Header.Del("If-None-Match") })
	refused("a longer life", strings.Replace(*a.URL, "X-Amz-Expires=60", "X-Amz-Expires=900", 1), data, nil)
	refused("a copy of something else", *a.URL, nil, func(q *http.Request) { q.Header.Set("X-Amz-Copy-Source", "/books/lib/x") })
	refused("a deletion", *a.URL, nil, func(q *http.Request) { q.Method = http.MethodDelete })
	for _, c := range []string{other.Path} {
		if r.content(strings.TrimPrefix(c, "/books/")) != nil {
			t.Errorf("%s is there", c)
		}
	}
	if status, answer := r.put(*a.URL, a.Headers, data, nil); status != 200 {
		t.Fatalf("the upload: %d %s", status, answer)
	}
	if !bytes.Equal(r.content("lib/"+path), data) {
		t.Error("the file is not what was sent")
	}
	if status, _ := r.put(*a.URL, a.Headers, data, nil); status != 412 {
		t.Errorf("replacing unasked: %d", status)
	}
	begin(int(config.SingleBytes), "largest.cbz")
	if n, err := r.store.AbortStale(t.Context(), "books", time.Now().Add(time.Hour)); err != nil || n > 0 {
		t.Errorf("%d uploads in parts were begun: %v", n, err)
	}
	short := newRig(t, upload.Config{MaxBytes: 1 << 20, SingleBytes: 1 << 20, Life: time.Second})
	var late upload.Begun
	short.User(t, "one", "admin").Do("POST", short.base, files(false, object{"path": "late.cbz", "size": 3})).Want(201).JSON(&late)
	testkit.Eventually(t, 5*time.Second, func() bool { return time.Now().After(late.Files[0].ExpiresAt.Add(time.Second)) })
	if status, answer := short.put(*late.Files[0].URL, late.Files[0].Headers, []byte("abc"), nil); status != 403 {
		t.Errorf("after its expiry: %d %s", status, answer)
	}
}

func TestInParts(t *testing.T) {
	t.Parallel()
	r := newRig(t, config)
	user := r.User(t, "one", "maintainer")
	data := bytes.Repeat([]byte("0123456789abcdef"), (33<<20)/16) // three parts
	var got upload.Begun
	user.Do("POST", r.base, files(false, object{"path": "S/big.cbz", "size": len(data)})).Want(201).JSON(&got)
	a := got.Files[0]
	if a.UploadID == nil || len(a.Parts) != 3 || *a.PartSize != 16<<20 || a.URL != nil {
		t.Fatalf("%+v", a)
	}
	mine := r.base + "/" + a.UploadID.String()
	user.Do("POST", mine+"/complete", nil).Want(409)
	var open httpapi.Page[upload.Open]
	if user.Do("GET", r.base, nil).Want(200).JSON(&open); open.Total != 1 || len(open.Data) != 1 || open.Data[0].UploadID != *a.UploadID || open.Data[0].Path != "S/big.cbz" {
		t.Errorf("open uploads: %+v", open)
	}
	user.Do("GET", "/api/v1/libraries/"+uuid.NewString()+"/uploads", nil).Want(404)
	send := func(p upload.PartAddress) (int, string) {
		return r.put(p.URL, a.Headers, data[p.Offset:p.Offset+p.Size], nil)
	}
	if status, _ := r.put(a.Parts[2].URL, a.Headers, data[:a.Parts[2].Size+1], nil); status < 400 {
		t.Errorf("a part that is too long: %d", status)
	}
	for _, p := range a.Parts[:2] {
		if status, answer := send(p); status != 200 {
			t.Fatalf("part %d: %d %s", p.Number, status, answer)
		}
	}
	if answer := user.Do("POST", mine+"/complete", nil).Want(409); !bytes.Contains(answer.Body, []byte("the wrong size: 3.")) {
		t.Errorf("one part missing: %s", answer.Body)
	}
	var rest upload.Address
	user.Do("GET", mine, nil).Want(200).JSON(&rest)
	if len(rest.Parts) != 1 || rest.Parts[0].Number != 3 {
		t.Fatalf("what is missing: %+v", rest.Parts)
	}
	if status, answer := send(rest.Parts[0]); status != 200 {
		t.Fatalf("part 3: %d %s", status, answer)
	}
	foreign := r.User(t, "two", "admin")
	for _, c := range [][2]string{{"GET", ""}, {"POST", "/complete"}, {"DELETE", ""}} {
		foreign.Do(c[0], mine+c[1], nil).Want(404)
		r.User(t, "one", "reader").Do(c[0], mine+c[1], nil).Want(403)
		user.Do(c[0], "/api/v1/libraries/"+uuid.NewString()+"/uploads/"+a.UploadID.String()+c[1], nil).Want(404)
	}
	user.Do("POST", mine+"/complete", nil).Want(200)
	if !bytes.Equal(r.content("lib/S/big.cbz"), data) {
		t.Error("the file is not what was sent")
	}
	if m := user.Do("POST", mine+"/complete", nil).Want(200).Map(); m["path"] != "S/big.cbz" || m["size"] != float64(len(data)) {
		t.Errorf("completed again: %v", m)
	}
	user.Do("GET", mine, nil).Want(404)
	user.Do("DELETE", mine, nil).Want(404)
	if !bytes.Equal(r.content("lib/S/big.cbz"), data) {
		t.Error("the file went with an upload that was completed")
	}

	// Another upload of the same file, which was created meanwhile.
	user.Do("POST", r.base, files(false, object{"path": "S/big.cbz", "size": 2 << 20})).Want(201).JSON(&got)
	again := got.Files[0]
	if status, answer := r.put(again.Parts[0].URL, nil, data[:2<<20], nil); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	user.Do("POST", r.base+"/"+again.UploadID.String()+"/complete", nil).Want(409)
	user.Do("DELETE", r.base+"/"+again.UploadID.String(), nil).Want(204)
	if status, _ := r.put(again.Parts[0].URL, nil, data[:2<<20], nil); status < 400 {
		t.Errorf("a part of an aborted upload: %d", status)
	}
	user.Do("GET", r.base+"/"+again.UploadID.String(), nil).Want(404)

	// The response to a completion was lost.
	user.Do("POST", r.base, files(true, object{"path": "S/big.cbz", "size": 2 << 20})).Want(201).JSON(&got)
	lost := got.Files[0]
	if status, answer := r.put(lost.Parts[0].URL, nil, data[:2<<20], nil); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	var stored string
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select store_id from upload where id = $1", lost.UploadID).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	parts, err := r.store.Parts(t.Context(), "books", "lib/S/big.cbz", stored)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.CompleteParts(t.Context(), "books", "lib/S/big.cbz", stored, parts, false); err != nil {
		t.Fatal(err)
	}
	user.Do("POST", r.base+"/"+lost.UploadID.String()+"/complete", nil).Want(200)
	if user.Do("GET", r.base, nil).Want(200).JSON(&open); open.Total != 0 || len(open.Data) != 0 {
		t.Errorf("what is completed is still open: %+v", open)
	}
}

func TestWhatWasBegunIsAbortedWhenARequestFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, config)
	user := r.User(t, "one", "maintainer")
	r.exec("alter table upload add constraint none check (size < 0) not valid")
	large := int(config.SingleBytes) + 1
	user.Do("POST", r.base, files(false, object{"path": "a.cbz", "size": large}, object{"path": "b.cbz", "size": large})).Want(500)
	if got := r.s3.Counter.Reset(); len(got) != 4 {
		t.Errorf("begun and aborted: %v", got)
	}
	if n, err := r.store.AbortStale(t.Context(), "books", time.Now().Add(time.Hour)); err != nil || n > 0 {
		t.Errorf("%d uploads in parts are left: %v", n, err)
	}
}

// Of two concurrent requests with room for one more multipart upload, one starts it; the uploads of the other are
// aborted.
func TestUploadsAreNotTooMany(t *testing.T) {
	t.Parallel()
	r := newRig(t, config)
	user := r.User(t, "one", "maintainer")
	r.exec(`insert into upload (tenant_id, id, library_id, key, size, part_size, overwrite, store_id, expires_at)
		select $1, gen_random_uuid(), $2, n::text, 1, 1, false, 'x', now() + interval '1 hour' from generate_series(1, 1999) n`, r.One, r.library)
	r.exec("update upload set completed_at = now() where key::integer > 999") // these do not count
	answers := make([]int, 2)
	begin := func(i int) func() {
		return func() {
			answers[i] = user.Do("POST", r.base, files(false, object{"path": fmt.Sprint(i, ".cbz"), "size": config.SingleBytes + 1})).Status
		}
	}
	r.DB.Together(t, "upload", begin(0), begin(1))
	if slices.Sort(answers); !slices.Equal(answers, []int{201, 409}) {
		t.Errorf("answers %v", answers)
	}
	if n, err := r.store.AbortStale(t.Context(), "books", time.Now().Add(time.Hour)); err != nil || n != 1 {
		t.Errorf("the store has %d uploads in parts: %v", n, err)
	}
}

// An upload is completed where it was started, even if the library has moved to another path, where a file of the same
// name and size may be.
func TestLibraryGoesMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(t, config)
	user := r.User(t, "one", "maintainer")
	data := bytes.Repeat([]byte("a"), 2<<20)
	var got upload.Begun
	user.Do("POST", r.base, files(false, object{"path": "S/big.cbz", "size": len(data)})).Want(201).JSON(&got)
	if err := r.store.Put(t.Context(), "books", "other/S/big.cbz", "application/zip", make([]byte, len(data))); err != nil {
		t.Fatal(err)
	}
	r.exec("insert into library_root (tenant_id, path, bucket, prefix) values ($1, 's3://books/lib', 'books', 'lib/')", r.One)
	r.exec("update library set path = 's3://books/other', prefix = 'other/'")
	if status, answer := r.put(got.Files[0].Parts[0].URL, nil, data, nil); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	user.Do("POST", r.base+"/"+got.Files[0].UploadID.String()+"/complete", nil).Want(200)
	if !bytes.Equal(r.content("lib/S/big.cbz"), data) || bytes.Equal(r.content("other/S/big.cbz"), data) {
		t.Error("the file is not where its upload was begun")
	}
}

// Once the library has moved and its former place was taken away from the tenant, perhaps for another one, nothing more
// is written there.
func TestPlaceWasTakenAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, config)
	user := r.User(t, "one", "maintainer")
	data := bytes.Repeat([]byte("a"), 2<<20)
	var got upload.Begun
	user.Do("POST", r.base, files(true, object{"path": "big.cbz", "size": len(data)})).Want(201).JSON(&got)
	if status, answer := r.put(got.Files[0].Parts[0].URL, nil, data, nil); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	r.exec(`insert into library_root (tenant_id, path, bucket, prefix) values ($1, 's3://books/other', 'books', 'other/'),
		($1, '/lib', 'elsewhere', 'lib/'), ($1, '/within', 'books', 'lib/within/'), ($2, 's3://books/lib', 'books', 'lib/')`, r.One, r.Two)
	r.exec("update library set path = 's3://books/other', prefix = 'other/'")
	at := r.base + "/" + got.Files[0].UploadID.String()
	user.Do("GET", at, nil).Want(404)
	user.Do("POST", at+"/complete", nil).Want(404)
	if r.content("lib/big.cbz") != nil {
		t.Error("the file is in the folder of another tenant")
	}
	user.Do("DELETE", at, nil).Want(204)
	if n, err := r.store.AbortStale(t.Context(), "books", time.Now().Add(time.Hour)); err != nil || n > 0 {
		t.Errorf("%d uploads are left: %v", n, err)
	}
}

// An abort may precede a concurrent completion.
func TestAbortedWhileCompleting(t *testing.T) {
	t.Parallel()
	r := newRig(t, config)
	target, err := url.Parse(r.s3.Config.LibraryEndpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(target)
		p.Out.Host = p.In.Host // it is signed
	}}
	aborts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if id := req.URL.Query().Get("uploadId"); req.Method == http.MethodPost && id != "" {
			if err := r.store.AbortParts(req.Context(), "books", strings.TrimPrefix(req.URL.Path, "/books/"), id); err != nil {
				t.Error(err)
			}
		}
		proxy.ServeHTTP(w, req)
	}))
	defer aborts.Close()
	cfg := r.s3.Config
	cfg.LibraryPublic, cfg.LibraryEndpoint = cfg.LibraryEndpoint, aborts.URL
	r.Server = r.Beside(t, func(a *httpapi.API, d *db.DB) {
		(&upload.Uploader{Database: d, Store: cfg.Library(), Config: config}).Routes(a)
	})
	user := r.User(t, "one", "maintainer")
	var got upload.Begun
	user.Do("POST", r.base, files(false, object{"path": "S/big.cbz", "size": 2 << 20})).Want(201).JSON(&got)
	if status, answer := r.put(got.Files[0].Parts[0].URL, nil, make([]byte, 2<<20), nil); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	m := user.Do("POST", r.base+"/"+got.Files[0].UploadID.String()+"/complete", nil).Want(404).Map()
	if !strings.Contains(m["message"].(string), "start another") {
		t.Errorf("%v", m)
	}
}

// completes reports whether a request to the store joins the parts of an upload.
func completes(req *http.Request) bool {
	return req.Method == http.MethodPost && req.URL.Query().Get("uploadId") != ""
}

// completing returns a rig with an uploaded file, whose store responds by answer; through forwards a request.
func completing(t *testing.T, answer func(w http.ResponseWriter, req *http.Request, through http.Handler)) (r *rig, user *testkit.Client, path string) {
	t.Helper()
	r = newRig(t, config)
	target, err := url.Parse(r.s3.Config.LibraryEndpoint)
	if err != nil {
		t.Fatal(err)
	}
	through := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(target)
		p.Out.Host = p.In.Host // it is signed
	}}
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { answer(w, req, through) }))
	t.Cleanup(store.Close)
	cfg := r.s3.Config
	cfg.LibraryPublic, cfg.LibraryEndpoint = cfg.LibraryEndpoint, store.URL
	r.Server = r.Beside(t, func(a *httpapi.API, d *db.DB) {
		(&upload.Uploader{Database: d, Store: cfg.Library(), Config: config}).Routes(a)
	})
	user = r.User(t, "one", "maintainer")
	var got upload.Begun
	user.Do("POST", r.base, files(false, object{"path": "S/big.cbz", "size": 2 << 20})).Want(201).JSON(&got)
	if status, answer := r.put(got.Files[0].Parts[0].URL, nil, make([]byte, 2<<20), nil); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	return r, user, r.base + "/" + got.Files[0].UploadID.String() + "/complete"
}

// A completion right after another one gets the same response, even from a store that checks first whether the file
// exists: it is the upload's own.
func TestCompletedWhileCompleting(t *testing.T) {
	t.Parallel()
	r, user, path := completing(t, func(w http.ResponseWriter, req *http.Request, through http.Handler) {
		if !completes(req) {
			through.ServeHTTP(w, req)
			return
		}
		through.ServeHTTP(httptest.NewRecorder(), req) // another client's
		w.WriteHeader(http.StatusPreconditionFailed)
	})
	user.Do("POST", path, nil).Want(200)
	if len(r.content("lib/S/big.cbz")) != 2<<20 {
		t.Error("the file is not there")
	}
}

// Amazon S3 refuses a second completion while the first is running; and a store may fail.
func TestCompletedLater(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	r, user, path := completing(t, func(w http.ResponseWriter, req *http.Request, through http.Handler) {
		if n := status.Load(); n != 0 && completes(req) {
			w.WriteHeader(int(n))
			fmt.Fprint(w, "<Error><Code>ConditionalRequestConflict</Code></Error>")
			return
		}
		through.ServeHTTP(w, req)
	})
	for _, n := range []int32{http.StatusConflict, http.StatusBadGateway} {
		status.Store(n)
		if answer := user.Do("POST", path, nil).Want(503); answer.Header.Get("Retry-After") == "" {
			t.Errorf("the store answers %d: it is not said when to try again: %v", n, answer.Header)
		}
	}
	status.Store(0)
	user.Do("POST", path, nil).Want(200)
	if len(r.content("lib/S/big.cbz")) != 2<<20 {
		t.Error("the file is not there")
	}
}

// An upload that the store no longer knows was completed or aborted: while the store fails, that is unknown.
func TestCompletedAndThenNothing(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	_, user, path := completing(t, func(w http.ResponseWriter, req *http.Request, through http.Handler) {
		if completes(req) {
			through.ServeHTTP(httptest.NewRecorder(), req)
			w.WriteHeader(http.StatusNotFound) // another request has completed it meanwhile
			return
		}
		if req.URL.Query().Has("list-type") && down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		through.ServeHTTP(w, req)
	})
	down.Store(true)
	user.Do("POST", path, nil).Want(503)
	down.Store(false)
	user.Do("POST", path, nil).Want(200)
}

// The old file that an upload was to replace is not taken for the uploaded one, although it has the same size.
func TestAbortedReplacement(t *testing.T) {
	t.Parallel()
	r := newRig(t, config)
	user := r.User(t, "one", "maintainer")
	testkit.WriteFile(t, r.s3.Dir+"/books/lib", "S/old.cbz", make([]byte, 2<<20))
	if err := os.Chtimes(r.s3.Dir+"/books/lib/S/old.cbz", time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	var got upload.Begun
	user.Do("POST", r.base, files(true, object{"path": "S/old.cbz", "size": 2 << 20})).Want(201).JSON(&got)
	address, err := url.Parse(got.Files[0].Parts[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.store.AbortParts(t.Context(), "books", "lib/S/old.cbz", address.Query().Get("uploadId")); err != nil {
		t.Fatal(err)
	}
	user.Do("POST", r.base+"/"+got.Files[0].UploadID.String()+"/complete", nil).Want(404)
	testkit.WriteFile(t, r.s3.Dir+"/books/lib", "S/old.cbz", make([]byte, 1<<20)) // another client's, just written
	user.Do("POST", r.base+"/"+got.Files[0].UploadID.String()+"/complete", nil).Want(404)
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, config)
	user := r.User(t, "one", "maintainer")
	one := func(path string, size int64) object { return object{"path": path, "size": size} }
	bad := user.Do("POST", r.base, files(false, one("ok.cbz", 1), one("../a.cbz", 1), one("x.exe", 1), one("b.cbz", 200<<20), one("ok.cbz", 2), one("skip/a.cbz", 1))).Want(400)
	for i, member := range []string{"", "path", "path", "size", "path", "path"} {
		if named := bytes.Contains(bad.Body, fmt.Appendf(nil, "files[%d].%s", i, member)); named != (member != "") {
			t.Errorf("files[%d].%s is named: %t: %s", i, member, named, bad.Body)
		}
	}
	if empty := user.Do("POST", r.base, files(false, one("ok.cbz", 1), one("a.cbz", 0))).Want(400); !bytes.Contains(empty.Body, []byte("files[1].size")) {
		t.Errorf("an empty file: %s", empty.Body)
	}
	user.Do("POST", r.base, files(false)).Want(400)
	many := make([]object, 101)
	for i := range many {
		many[i] = one(fmt.Sprintf("%d.cbz", i), 1)
	}
	user.Do("POST", r.base, files(false, many...)).Want(400)
	for i := range many {
		many[i]["size"] = 2 << 20
	}
	user.Do("POST", r.base, files(false, many[:21]...)).Want(400)
	r.User(t, "one", "reader").Do("POST", r.base, files(false, one("a.cbz", 1))).Want(403)
	r.User(t, "two", "admin").Do("POST", r.base, files(false, one("a.cbz", 1))).Want(404)
	user.Do("POST", "/api/v1/libraries/"+uuid.NewString()+"/uploads", files(false, one("a.cbz", 1))).Want(404)

	folder := r.add(r.One, "/srv/books", "srv/") // its name says nothing about the store
	user.Do("POST", "/api/v1/libraries/"+folder.String()+"/uploads", files(false, one("a.cbz", 1))).Want(201)
	off := newRig(t, upload.Config{SingleBytes: 1, Life: time.Minute})
	off.User(t, "one", "admin").Do("POST", off.base, files(false, one("a.cbz", 1))).Want(409)
	r.exec("update library set is_active = false where id = $1", r.library)
	if answer := user.Do("POST", r.base, files(false, one("a.cbz", 1))).Want(409); !bytes.Contains(answer.Body, []byte("isActive")) {
		t.Errorf("a library that is not active: %s", answer.Body)
	}
	r.exec("update library set is_active = true where id = $1", r.library)

	// An existing book, and a deleted one.
	series := uuid.New()
	r.exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, 'S', 'S', 'S', 'S', 's')`, r.One, series, r.library)
	for i, key := range []string{"S/here.cbz", "S/gone.cbz"} {
		r.exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, deleted_at)
			values ($1, gen_random_uuid(), $2, $3, $4, 1, now(), 'cbz', 'b', 'b', 'b', case when $5 = 1 then now() end)`, r.One, r.library, series, key, i)
	}
	taken := user.Do("POST", r.base, files(false, one("S/gone.cbz", 1), one("S/here.cbz", 1))).Want(409)
	if !bytes.Contains(taken.Body, []byte("files[1].path")) || bytes.Contains(taken.Body, []byte("files[0]")) {
		t.Errorf("what exists: %s", taken.Body)
	}
	var got upload.Begun
	user.Do("POST", r.base, files(true, one("S/here.cbz", 1))).Want(201).JSON(&got)
	if _, conditional := got.Files[0].Headers["If-None-Match"]; conditional {
		t.Error("overwriting is conditional")
	}
	r.exec("update tenant set max_books = 2 where id = $1", r.One)
	user.Do("POST", r.base, files(true, one("S/new.cbz", 1), one("S/here.cbz", 1))).Want(201) // one exists
	full := user.Do("POST", r.base, files(true, one("S/new.cbz", 1), one("S/newer.cbz", 1))).Want(409)
	if !bytes.Contains(full.Body, []byte("is 2 books, and it has 1")) {
		t.Errorf("a full tenant: %s", full.Body)
	}
	user.Do("POST", r.base, files(true, one("S/here.cbz", 1), one("S/cover.jpg", 1))).Want(201) // no new book

	r.exec(`insert into upload (tenant_id, id, library_id, key, size, part_size, overwrite, store_id, expires_at)
		select $1, gen_random_uuid(), $2, n::text, 1, 1, false, 'x', now() + interval '1 hour' from generate_series(1, 1000) n`, r.One, r.library)
	user.Do("POST", r.base, files(true, one("S/here.cbz", 2<<20))).Want(409)
	r.exec("update upload set expires_at = now() - interval '1 second'")
	user.Do("POST", r.base, files(true, one("S/here.cbz", 2<<20))).Want(201).JSON(&got)
	last := r.base + "/" + got.Files[0].UploadID.String()
	user.Do("GET", last, nil).Want(200)
	r.exec("update upload set expires_at = now() - interval '1 second'")
	for _, c := range [][2]string{{"GET", ""}, {"POST", "/complete"}, {"DELETE", ""}} { // the store no longer knows it
		user.Do(c[0], last+c[1], nil).Want(404)
	}
}

// An upload that was not completed in time is aborted in the store, which would keep its parts. One that the store
// refuses to abort is tried again.
func TestExpiredUploadsAreAborted(t *testing.T) {
	t.Parallel()
	r := newRig(t, config)
	user := r.User(t, "one", "maintainer")
	begin := func(path string) {
		t.Helper()
		user.Do("POST", r.base, files(false, object{"path": path, "size": 2 << 20})).Want(201)
	}
	begin("expired.cbz")
	r.exec("update upload set expires_at = now() - interval '1 second'")
	begin("open.cbz")
	r.exec(`insert into upload (tenant_id, id, library_id, key, size, part_size, overwrite, store_id, expires_at, completed_at)
		select $1, gen_random_uuid(), $2, 'completed', 1, 1, false, 'x', now() + n * interval '1 hour', now() from generate_series(-1, 1, 2) n`, r.One, r.library)
	forget := func(keys ...string) {
		t.Helper()
		if err := upload.Forget(t.Context(), r.DB.System, r.store, time.Minute); err != nil {
			t.Fatal(err)
		}
		rows, err := r.DB.Owner.Pool().Query(t.Context(), "select key from upload order by key")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || !slices.Equal(got, keys) {
			t.Errorf("known uploads: %q, %v; want %q", got, err, keys)
		}
	}
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == http.MethodDelete {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, req)
	})
	forget("completed", "expired.cbz", "open.cbz")
	r.s3.Counter.Meddle(nil)
	forget("completed", "open.cbz")
	forget("completed", "open.cbz")
	if n, err := r.store.AbortStale(t.Context(), "books", time.Now().Add(time.Hour)); err != nil || n != 1 {
		t.Errorf("the store has %d uploads in parts, want that of open.cbz: %v", n, err)
	}
	begin("refused.cbz")
	r.exec("update upload set expires_at = now() - interval '8 days' where key = 'refused.cbz'")
	r.s3.Counter.Meddle(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusForbidden) })
	forget("completed", "open.cbz")
}

// A library of a root takes an upload. What is still being uploaded when the library is deleted is aborted.
func TestUploadToARoot(t *testing.T) {
	t.Parallel()
	r := newRig(t, config)
	r.exec("insert into library_root (tenant_id, path, bucket, prefix) values ($1, '/library', 'books', 'shelf/')", r.One)
	admin := r.User(t, "one", "admin")
	made := admin.Do("POST", "/api/v1/libraries", object{"name": "Comics", "path": "/library"}).Want(201).Map()
	at := "/api/v1/libraries/" + made["id"].(string)
	data := testkit.Comic(t, 1, 2, "")
	var got upload.Begun
	admin.Do("POST", at+"/uploads", files(false, object{"path": "S/1.cbz", "size": len(data)}, object{"path": "S/2.cbz", "size": 2 << 20})).Want(201).JSON(&got)
	if status, answer := r.put(*got.Files[0].URL, got.Files[0].Headers, data, nil); status != 200 || !bytes.Equal(r.content("shelf/S/1.cbz"), data) {
		t.Errorf("%d %s", status, answer)
	}
	admin.Do("DELETE", at, nil).Want(204)
	if n, err := r.store.AbortStale(t.Context(), "books", time.Now().Add(time.Hour)); err != nil || n != 0 {
		t.Errorf("%d uploads to a deleted library are open: %v", n, err)
	}
}

// The uploads to a library that is deleted are aborted, and only those.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	r := newRig(t, config)
	user := r.User(t, "one", "maintainer")
	other := "/api/v1/libraries/" + r.add(r.One, "s3://books/other", "other/").String() + "/uploads"
	for _, at := range []string{r.base, other} {
		user.Do("POST", at, files(false, object{"path": "a.cbz", "size": 2 << 20}, object{"path": "b.cbz", "size": 2 << 20})).Want(201)
	}
	u := &upload.Uploader{Database: r.DB.App, Store: r.store, Config: config}
	if done, err := u.Abandon(db.In(t.Context(), db.Tenant(r.One)), r.library); !done || err != nil {
		t.Error(done, err)
	}
	if n, err := r.store.AbortStale(t.Context(), "books", time.Now().Add(time.Hour)); err != nil || n != 2 {
		t.Errorf("the store has %d uploads in parts, want those to the other library: %v", n, err)
	}
}

// The store's public address may differ from the functions' address.
func TestPublicEndpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t, config)
	cfg := r.s3.Config
	cfg.LibraryPublic = "https://books.example.org"
	r.store = cfg.Library()
	other := r.Beside(t, func(a *httpapi.API, d *db.DB) {
		(&upload.Uploader{Database: d, Store: cfg.Library(), Config: config}).Routes(a)
	})
	var got upload.Begun
	r.User(t, "one", "admin").At(other).Do("POST", r.base, files(false, object{"path": "a b.cbz", "size": 1})).Want(201).JSON(&got)
	if !strings.HasPrefix(*got.Files[0].URL, "https://books.example.org/books/lib/a%20b.cbz?") {
		t.Errorf("address %s", *got.Files[0].URL)
	}
}
