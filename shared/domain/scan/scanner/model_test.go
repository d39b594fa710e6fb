package scanner_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// op is one event for a folder or its library; a, b and c select what it applies to.
type op struct {
	Kind    string
	A, B, C int
}

func (o op) String() string { return fmt.Sprintf("{%q, %d, %d, %d}", o.Kind, o.A, o.B, o.C) }

// kinds are the possible events; repeated ones are more frequent. Those that begin with sync end with everything known.
var kinds = strings.Fields(`add add add add copy copy-over rename rename rename rename-over move-folder move-folder swap swap shift cycle
	replace replace break delete delete-folder back back touch retag retag opf opf series-json cover remove-sidecar
	look look run run cancel folder-scan progress progress progress title number summary retry purge age
	sync sync sync sync-deep sync-interrupted sync-interrupted sync-events sync-events sync-during
	limit sync-beside sync-over sync-crew sync-crew sync-crew-events renumber retitle series-title series-title`)

// stage is shared by all runs of the model.
type stage struct {
	*testkit.Server
	s3   *testkit.S3
	user *testkit.Client // any user: every run has its own
	runs atomic.Int64
}

// TestNothingIsLost runs random changes of files, scans, notifications and people's actions, and compares the state
// after every complete scan with the expected one. MODEL_RUNS and MODEL_SEED set duration and seed.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first := number(t, "MODEL_SEED", 1)
	for seed := range number(t, "MODEL_RUNS", 4) {
		random := rand.New(rand.NewPCG(0, uint64(first+seed)))
		how := anyStyle(random)
		ops := anyOps(random, kinds, 50)
		if wrong := s.play(t, how, ops); len(wrong) > 0 {
			ops, wrong = shrink(ops, wrong, func(ops []op) []string { return s.play(t, how, ops) })
			t.Fatalf("MODEL_SEED=%d with %s:\n%v\n%s", first+seed, how, ops, strings.Join(wrong, "\n"))
		}
	}
}

// number returns a setting from the environment.
func number(t *testing.T, name string, otherwise int) int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// anyOps returns at least five random operations.
func anyOps(random *rand.Rand, kinds []string, most int) []op {
	ops := make([]op, 5+random.IntN(most))
	for i := range ops {
		ops[i] = op{kinds[random.IntN(len(kinds))], random.IntN(16), random.IntN(16), random.IntN(16)}
	}
	return ops
}

// shrink removes operations that the failure does not need.
func shrink(ops []op, wrong []string, play func([]op) []string) ([]op, []string) {
	for part := len(ops) / 2; part > 0; {
		smaller := false
		for at := 0; at+part <= len(ops); {
			fewer := slices.Concat(ops[:at], ops[at+part:])
			if w := play(fewer); len(w) > 0 {
				ops, wrong, smaller = fewer, w, true
			} else {
				at += part
			}
		}
		if !smaller || part > 1 {
			part /= 2
		}
	}
	return ops, wrong
}

func newStage(t *testing.T) *stage {
	s := &stage{s3: testkit.StartS3(t, "books")}
	s.Server = testkit.Serve(t, progress.Routes, series1, func(a *httpapi.API, d *db.DB) {
		book.Routes(a, d, silent, nil)
		scan.Routes(a, d, silent, nil)
	})
	s.user = s.User(t, "one", auth.Admin)
	return s
}

func series1(a *httpapi.API, d *db.DB) {
	series.Routes(a, d, silent, nil)
}

func silent(context.Context, uuid.UUID, ...events.Event) {}

// reports collects errors.
type reports struct {
	testing.TB
	wrong *[]string
	mu    *sync.Mutex
}

// stopped ends a run that cannot continue.
type stopped struct{}

func (r reports) Helper() {}
func (r reports) Errorf(f string, a ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.wrong = append(*r.wrong, fmt.Sprintf(f, a...))
}
func (r reports) Error(a ...any)            { r.Errorf("%s", fmt.Sprint(a...)) }
func (r reports) Fatalf(f string, a ...any) { r.Errorf(f, a...); panic(stopped{}) }
func (r reports) Fatal(a ...any)            { r.Fatalf("%s", fmt.Sprint(a...)) }

// matter is the content of a file. Equal pages in a file of the same size are the same book to a library (ident); an
// unreadable file has no ident.
type matter struct {
	name  string
	ident string
	pages int
	work  int
	data  []byte
}

// file is the file under a key.
type file struct {
	matter
	time time.Time
}

// world is a folder and its library.
type world struct {
	*rig
	stage   *stage
	users   []*testkit.Client
	control *rig // a new library of the same folder
	prefix  string
	runner  *task.Runner
	moments moments
	crew    *crew
	second  sync.Mutex // held while a second worker has a task
	style   style

	mu       sync.Mutex // a file may change while it is read
	files    map[string]file
	beside   map[string]bool // sidecars
	old      []file          // deleted or overwritten files
	works    int
	versions map[int]int
	clock    int
	dirty    map[string]bool // keys that have changed since all was known

	// The state when all was known, and what has happened since.
	rows     map[uuid.UUID]row
	wants    map[uuid.UUID]*wanted
	titles   map[uuid.UUID]string // titles of series, given by people
	shelf    map[uuid.UUID]bool   // all series
	double   map[string]bool      // contents that were in two places at a time
	lost     map[uuid.UUID]bool   // books whose content was missing when their file had changed
	touched  map[string]bool      // contents of books that people changed before they were known
	partial  bool                 // something was read or looked at
	unclear  bool                 // the expected place of moved books is undefined
	broken   bool                 // a scan was not completed
	contents map[string]string    // by ident of a row
}

// wanted is people's data of a book.
type wanted struct {
	title, summary string
	number         *float64
	pages          [2]int // pages of the users
	created        time.Time
}

func (w *wanted) locked() bool { return w.title != "" || w.number != nil || w.summary != "" }

// row is a book as the database has it.
type row struct {
	ID          uuid.UUID `db:"id"`
	SeriesID    uuid.UUID `db:"series_id"`
	Key         string    `db:"key"`
	Live        bool      `db:"live"`
	Fingerprint string    `db:"fingerprint"`
	Size        int64     `db:"size"`
	Analyzed    bool      `db:"analyzed"`
	Pages       int       `db:"page_count"`
	Title       string    `db:"title"`
	Number      *float64  `db:"number"`
	Summary     string    `db:"summary"`
	Created     time.Time `db:"created_at"`
	Progress    []int     `db:"progress"`
	Indexed     int64     `db:"indexed"`  // size of the file that was read
	Replaced    bool      `db:"replaced"` // within the hour: a notification of its first content restores it
}

// ident identifies the content; "" if it was never read, or is unreadable.
func (r row) ident() string {
	if r.Fingerprint == "" || r.Live && !r.Analyzed {
		return ""
	}
	return fmt.Sprintf("%.16s/%d", r.Fingerprint, r.Size)
}

// play runs some operations and a scan, and returns what is wrong.
func (s *stage) play(t *testing.T, how style, ops []op) (wrong []string) {
	w := s.world(reports{t, &wrong, new(sync.Mutex)}, how)
	defer w.close()
	defer func() {
		if p := recover(); p != nil && p != (stopped{}) {
			panic(p)
		}
	}()
	for _, o := range append(slices.Clone(ops), op{Kind: "sync"}) {
		if w.do(o); len(wrong) > 0 {
			return append(wrong, fmt.Sprintf("after %v", o))
		}
	}
	return wrong
}

func (s *stage) world(t testing.TB, how style) *world {
	n := s.runs.Add(1)
	w := &world{stage: s, prefix: fmt.Sprintf("m%d/", n), style: how, files: map[string]file{}, beside: map[string]bool{}, versions: map[int]int{}, contents: map[string]string{},
		dirty: map[string]bool{}, rows: map[uuid.UUID]row{}, wants: map[uuid.UUID]*wanted{}, titles: map[uuid.UUID]string{}}
	w.known()
	w.rig = s.rig(t, fmt.Sprintf("m%d", n), w.prefix, how)
	w.control = s.rig(t, fmt.Sprintf("c%d", n), w.prefix, how)
	for i, name := range []string{"ann", "bob"} {
		user := *s.user
		user.ID, user.Tenant, user.Host = uuid.New(), w.tenant, fmt.Sprintf("m%d.test", n)
		w.exec(`insert into account (tenant_id, id, username, email, password_hash, role) values ($1, $2, $3, $3 || '@example.org', '', 'admin')`, w.tenant, user.ID, name)
		token, err := s.Tokens.Sign(w.tenant, user.ID, 1, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		user.Header = http.Header{"Authorization": {"Bearer " + token}}
		w.users = append(w.users[:i:i], &user)
	}
	if err := os.MkdirAll(w.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	w.crew = newCrew()
	w.runner = w.worker("model")
	return w
}

// rig makes a library for a tenant of its own.
func (s *stage) rig(t testing.TB, name, prefix string, how style) *rig {
	r := &rig{t: t, db: s.DB, s3: s.s3, library: uuid.New(), folder: filepath.Join(s.s3.Dir, "books", prefix)}
	r.tenant = s.DB.Tenant(t, name)
	r.exec("update tenant set max_scans = null where id = $1", r.tenant)
	r.shelve(prefix, how)
	return r
}

func (r *rig) shelve(prefix string, how style) {
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, series_config, book_strategy, book_config, number_strategy, purge_deleted_on_scan)
		values ($1, $2, 'Books', '/books', 'books', $3, $4, nullif($5, '')::jsonb, $6, nullif($7, '')::jsonb, $8, $9)`,
		r.tenant, r.library, prefix, how.series, how.seriesConfig, how.book, how.bookConfig, how.number, how.purges)
}

func (w *world) close() {
	w.moments.then.Store(nil)
	w.s3.Counter.Meddle(nil)
	if _, err := w.db.Owner.Pool().Exec(context.Background(), "delete from tenant where id = any($1)", []uuid.UUID{w.tenant, w.control.tenant}); err != nil {
		w.t.Errorf("the tenants cannot be deleted: %v", err)
	}
	if err := os.RemoveAll(w.folder); err != nil {
		w.t.Error(err)
	}
}

// known resets what has happened: all is known.
func (w *world) known() {
	w.double, w.lost, w.touched = map[string]bool{}, map[uuid.UUID]bool{}, map[string]bool{}
	w.dirty = map[string]bool{}
	w.partial, w.unclear, w.broken = false, false, false
}

// Files.

var folders = []string{"S", "T", "S/deep", "U", ""}

// keys returns the keys of all books in order.
func (w *world) keys() []string { return slices.Sorted(maps.Keys(w.files)) }

func (w *world) at(n int) (string, bool) {
	keys := w.keys()
	if len(keys) == 0 {
		return "", false
	}
	return keys[n%len(keys)], true
}

// free returns an unused key, from the n-th on.
func (w *world) free(folder, n int) string { return freeIn(w.files, w.style, folder, n) }

func freeIn(files map[string]file, how style, folder, n int) string {
	for i := range 100 {
		k := how.key(folders[folder%len(folders)], 1+(n+i)%8+i/8*8)
		if _, taken := files[k]; !taken {
			return k
		}
	}
	panic("no name is free")
}

func picture(w *world, work, page int) []byte {
	return append(slices.Clone(onePicture(w.t)), fmt.Sprintf("work %04d page %02d", work, page)...)
}

var onePicture = func() func(testing.TB) []byte {
	var once sync.Once
	var data []byte
	return func(t testing.TB) []byte {
		once.Do(func() { data = testkit.JPEG(t, 8, 8, 1) })
		return data
	}
}()

// content returns a version of a work: versions differ in metadata, some of them with the same size.
func (w *world) content(work, version, pages int) matter {
	var files []testkit.File
	for i := range pages {
		files = append(files, testkit.File{Name: fmt.Sprintf("%d.jpg", i+1), Data: picture(w, work, i)})
	}
	if work%4 != 3 || version > 0 {
		info := w.style.says(work, version) + fmt.Sprintf(`<Summary>Summary %02d</Summary><Genre>Genre %02d</Genre><Web>https://example.org/%02d</Web>`, version, version, version)
		if version%3 == 2 {
			info += "<Publisher>" + strings.Repeat("P", version) + "</Publisher>"
		}
		files = append(files, testkit.File{Name: "ComicInfo.xml", Data: []byte("<ComicInfo>" + info + "</ComicInfo>")})
	}
	data := testkit.Zip(w.t, files...)
	if w.style.packs && work%3 == 0 {
		data = testkit.SevenZip(w.t, files...)
	}
	return matter{name: fmt.Sprintf("work %d version %d", work, version), ident: fmt.Sprintf("%d/%d", work, len(data)), pages: pages, work: work, data: data}
}

func (w *world) fresh(pages int) matter {
	w.works++
	return w.content(w.works, 0, 1+pages%4)
}

// now returns a unique modification time.
func (w *world) now() time.Time {
	w.clock++
	return time.Date(2020, 1, 1, 0, 0, w.clock, 0, time.UTC)
}

func (w *world) where(key string) string { return filepath.Join(w.folder, filepath.FromSlash(key)) }

// put makes the folder equal to files without any partial file; replaced files may return later.
func (w *world) put(files map[string]file) {
	for key, f := range w.files {
		if g, ok := files[key]; !ok || g.name != f.name || !g.time.Equal(f.time) {
			w.old = append(w.old, f)
			w.dirty[key] = true
			if !ok {
				if err := os.Remove(w.where(key)); err != nil {
					w.t.Fatal(err)
				}
			}
		}
	}
	for key, f := range files {
		if g, ok := w.files[key]; ok && g.name == f.name && g.time.Equal(f.time) {
			continue
		}
		w.dirty[key] = true
		testkit.WriteFile(w.t, w.folder, ".new", f.data)
		if err := os.MkdirAll(filepath.Dir(w.where(key)), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.Chtimes(w.where(".new"), f.time, f.time); err != nil {
			w.t.Fatal(err)
		}
		if err := os.Rename(w.where(".new"), w.where(key)); err != nil {
			w.t.Fatal(err)
		}
	}
	w.files = files
	for ident, places := range w.places() {
		if len(places) > 1 {
			w.double[ident] = true
		}
	}
}

// places returns the keys of each content.
func (w *world) places() map[string][]string {
	out := map[string][]string{}
	for key, f := range w.files {
		if f.ident != "" {
			out[f.ident] = append(out[f.ident], key)
		}
	}
	return out
}

// change applies an operation to the files; false if it is none on files.
func (w *world) change(o op) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	files := maps.Clone(w.files)
	from, some := w.at(o.A)
	to, _ := w.at(o.B)
	move := func(names map[string]string) {
		moved := map[string]file{}
		for from, to := range names {
			moved[to] = files[from]
		}
		for from := range names {
			delete(files, from)
		}
		maps.Copy(files, moved)
	}
	write := func(key string, m matter) { files[key] = file{m, w.now()} }
	switch o.Kind {
	case "add":
		for range w.style.atOnce() {
			if len(files) < w.style.most() {
				write(freeIn(files, w.style, o.A, o.B), w.fresh(o.C))
			}
		}
		w.put(files)
		return true
	case "back":
		if len(w.old) > 0 && len(files) < w.style.most() {
			f := w.old[o.A%len(w.old)]
			files[w.free(o.B, o.C)] = f
		}
		w.put(files)
		return true
	}
	if !some && slices.Contains(fileOps, o.Kind) {
		return true
	}
	switch o.Kind {
	case "copy":
		if len(files) < w.style.most() {
			write(w.free(o.B, o.C), files[from].matter)
		}
	case "copy-over":
		write(to, files[from].matter)
	case "rename":
		move(map[string]string{from: w.free(o.B, o.C)})
	case "rename-over":
		if from != to {
			move(map[string]string{from: to})
		}
	case "move-folder":
		names, folder := map[string]string{}, folders[o.B%len(folders)]
		for k := range files {
			if path.Dir(k) != path.Dir(from) {
				continue
			}
			to := path.Join(folder, path.Base(k))
			if _, taken := files[to]; taken {
				return true
			}
			names[k] = to
		}
		move(names)
	case "swap":
		move(map[string]string{from: to, to: from})
	case "cycle":
		third, _ := w.at(o.C)
		if from != to && to != third && from != third {
			move(map[string]string{from: to, to: third, third: from})
		}
	case "shift":
		names := map[string]string{}
		for k := range files {
			if path.Dir(k) != path.Dir(from) {
				continue
			}
			names[k] = path.Join(path.Dir(k), w.style.after(path.Base(k)))
		}
		move(names)
	case "replace":
		write(from, w.fresh(o.C))
	case "break":
		f := files[from]
		f.name, f.ident, f.pages = fmt.Sprintf("broken %d", w.clock), "", 0
		switch o.B % 4 {
		case 0:
			f.data = []byte("no archive")
		case 1:
			f.data = nil
		case 2:
			f.data = f.data[:len(f.data)*2/3]
		case 3:
			f.data = testkit.Zip(w.t, testkit.File{Name: "a.txt", Data: []byte("no page")})
		}
		write(from, f.matter)
	case "delete":
		delete(files, from)
	case "delete-folder":
		for k := range files {
			if path.Dir(k) == path.Dir(from) {
				delete(files, k)
			}
		}
	case "touch":
		f := files[from]
		f.time = w.now()
		files[from] = f
	case "retag":
		f := files[from]
		if f.ident == "" {
			return true
		}
		w.versions[f.work]++
		m := w.content(f.work, w.versions[f.work], f.pages)
		write(from, m)
		if o.B%3 == 0 { // like a program that renames what it tags
			move(map[string]string{from: w.free(o.B, o.C)})
		}
	case "opf", "series-json", "cover", "remove-sidecar":
		w.sidecars(o, from)
		return true
	default:
		return false
	}
	w.put(files)
	return true
}

var fileOps = strings.Fields("copy copy-over rename rename-over move-folder swap cycle shift replace break delete delete-folder touch retag opf series-json cover remove-sidecar")

// sidecars writes a file beside the books, or removes one.
func (w *world) sidecars(o op, book string) {
	folder := path.Dir(book)
	var data []byte
	name := ""
	w.clock++
	switch o.Kind {
	case "opf":
		name, data = path.Join(folder, "metadata.opf"), opf(fmt.Sprintf("Beside %04d", w.clock), "<dc:publisher>Opf</dc:publisher>")
		if !w.style.isPlain() && o.C%3 == 0 {
			data = opf(fmt.Sprintf("Beside %04d", w.clock), fmt.Sprintf(`<meta name="calibre:series" content="Series %d"/>`, o.C%4))
		}
		if o.B%2 == 0 {
			name = strings.TrimSuffix(book, ".cbz") + ".opf"
		}
		if o.B%5 == 1 {
			data = data[:len(data)/2]
		}
	case "series-json":
		name, data = path.Join(folder, "series.json"), []byte(fmt.Sprintf(`{"metadata":{"publisher":"Json %04d","year":2001}}`, w.clock))
	case "cover":
		name, data = path.Join(folder, "cover.jpg"), append(slices.Clone(onePicture(w.t)), fmt.Sprint(w.clock)...)
	case "remove-sidecar":
		some := slices.Sorted(maps.Keys(w.beside))
		if len(some) == 0 {
			return
		}
		name = some[o.B%len(some)]
		delete(w.beside, name)
		w.dirty[name] = true
		if err := os.Remove(w.where(name)); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	if folder == "." && name != strings.TrimSuffix(book, ".cbz")+".opf" { // others mean nothing in the root
		return
	}
	testkit.WriteFile(w.t, w.folder, name, data)
	at := time.Date(2021, 1, 1, 0, 0, w.clock, 0, time.UTC)
	if err := os.Chtimes(w.where(name), at, at); err != nil {
		w.t.Fatal(err)
	}
	w.beside[name], w.dirty[name] = true, true
}

// Work.

func (w *world) do(o op) {
	if w.change(o) {
		return
	}
	switch o.Kind {
	case "look":
		w.noticed()
		var some []string
		for i, k := range slices.Sorted(maps.Keys(w.dirty)) {
			if o.A>>(i%4)&1 == 1 {
				some = append(some, k)
			}
		}
		w.look(some, o.B)
	case "run":
		w.noticed()
		for i := range 1 + o.A%3 {
			w.step(o.B + i)
		}
	case "cancel":
		w.noticed()
		w.broken = true
		id := w.start("normal")
		w.interrupted(id, 1+o.A, "stop")
		for range o.B % 3 {
			w.step(o.C)
		}
		switch w.result(id).Status {
		case task.Pending, task.Running:
			if _, err := task.Cancel(w.ctx(), w.db.App, id); err != nil {
				w.t.Fatal(err)
			}
		case task.Completed: // it ended first: its findings are settled, but were not compared
			w.unclear = true
		}
	case "folder-scan":
		w.noticed()
		k, ok := w.at(o.A)
		if !ok || path.Dir(k) == "." {
			return
		}
		w.finish(w.startWith(scan.Params{Mode: scan.Normal, Path: path.Dir(k)}))
	case "progress", "title", "number", "summary":
		w.people(o)
	case "retry":
		w.noticed()
		w.api(0, "POST", "/api/v1/books/retry-all-errors", map[string]any{}, 200)
		if o.A%2 == 0 {
			w.idle()
		}
	case "series-title":
		w.nameSeries(o)
	case "renumber", "retitle": // these change nothing in correct series
		w.noticed()
		if some := values[uuid.UUID](w.rig, "select id from series where tenant_id = app.tenant()"); len(some) > 0 {
			task := map[string]string{"renumber": "renumber", "retitle": "titles/reprocess"}[o.Kind]
			w.api(0, "POST", "/api/v1/series/bulk/"+task, map[string]any{"seriesIds": some}, 200)
		}
		for range o.A % 3 {
			w.step(o.B)
		}
	case "purge":
		w.purge()
	case "age":
		w.age()
	case "sync":
		w.sync(scan.Normal, o, "")
	case "sync-deep":
		w.sync(scan.Deep, o, "")
	case "sync-interrupted":
		w.sync(scan.Normal, o, []string{"stop", "pause", "kill"}[o.C%3])
	case "sync-during":
		w.sync(scan.Normal, o, "during")
	case "sync-beside", "sync-over", "sync-crew", "sync-crew-events":
		w.sync(scan.Normal, o, strings.TrimPrefix(o.Kind, "sync-"))
	case "limit":
		w.limited(o.A % 2)
	case "sync-events":
		w.noticed()
		w.announced(o)
	default:
		w.t.Fatalf("unknown operation %s", o.Kind)
	}
}

// noticed records which books can no longer be distinguished.
func (w *world) noticed() {
	w.partial = true
	w.hopped()
	places := w.places()
	for id, r := range w.rows {
		if _, other := w.files[r.Key]; other && len(places[w.contentOf(r)]) == 0 {
			w.lost[id] = true
		}
	}
}

// hopped records contents that have left a place where they were found, while the book that had them before is not
// known to be gone: of two missing books, the name decides.
func (w *world) hopped() {
	places := w.places()
	for id, r := range w.books() {
		c := w.contentOf(r)
		if _, before := w.rows[id]; !before && c != "" && !slices.Contains(places[c], r.Key) {
			w.double[c] = true
		}
	}
}

// contentOf returns the model's name of a content in the database; "" if unknown.
func (w *world) contentOf(r row) string { return w.contents[r.ident()] }

// pending returns the pending tasks by priority.
func (w *world) pending() []uuid.UUID {
	return values[uuid.UUID](w.rig, "select id from task where tenant_id = app.tenant() and status = 'pending' order by priority desc, id")
}

func (w *world) take(ctx context.Context, r *rig, id uuid.UUID) {
	w.exec("update task set scheduled_for = now() where tenant_id = $1 and id = $2", r.tenant, id)
	if err := w.runner.Take(ctx, fmt.Sprintf(`{"tenant":"%s","task":"%s"}`, r.tenant, id)); err != nil {
		w.t.Fatal(err)
	}
}

// step runs one of the pending tasks; false if there is none.
func (w *world) step(n int) bool {
	some := w.pending()
	if len(some) == 0 {
		return false
	}
	w.take(context.Background(), w.rig, some[n%len(some)])
	return true
}

// idle runs all tasks, including those that other workers hold when it is called.
func (w *world) idle() {
	for n := 0; w.step(0) || w.others(); n++ {
		if n > 500 {
			w.t.Fatalf("tasks never end: %q", values[string](w.rig, "select type || ' ' || params || ' ' || coalesce(last_error, '') from task where tenant_id = app.tenant() and status = 'pending'"))
		}
	}
}

// interrupted runs a task until it has sent that many requests or events; then the worker stops, dies or pauses.
func (w *world) interrupted(id uuid.UUID, after int, how string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pausing := make(chan struct{})
	var asked atomic.Int64
	var once sync.Once
	defer w.meddle(func() {
		if asked.Add(1) == int64(after) {
			once.Do(func() {
				if how == "pause" {
					close(pausing)
				} else {
					cancel()
				}
			})
		}
	})()
	w.take(task.WithPause(ctx, pausing), w.rig, id)
	if how == "kill" {
		w.exec("update task set deaths = deaths + 1 where tenant_id = $1 and id = $2 and status = 'pending'", w.tenant, id)
	}
}

// finish runs a scan and all other pending tasks, and returns the scan's result.
func (w *world) finish(id uuid.UUID) result {
	w.idle()
	return w.result(id)
}

// look looks at the keys in some order, some of them repeatedly.
func (w *world) look(keys []string, n int) {
	s := &scanner.Scanner{Database: w.db.App, Library: w.s3.Store, Publish: silent, Parallel: 4}
	for i := range keys {
		some := []string{w.prefix + keys[(i*7+n)%len(keys)]}
		if n%3 == 1 {
			some = append(some, w.prefix+keys[(i+1)%len(keys)])
		}
		if n%3 == 2 && i == 0 {
			for _, k := range keys {
				some = append(some, w.prefix+k)
			}
		}
		if err := s.Look(w.ctx(), w.tenant, w.library, some); err != nil {
			w.t.Fatal(err)
		}
		if n%4 > 1 {
			w.step(i + n)
		}
	}
	if n%2 == 0 {
		for _, k := range keys { // complete, as 7 and the number of keys may share a factor
			if err := s.Look(w.ctx(), w.tenant, w.library, []string{w.prefix + k}); err != nil {
				w.t.Fatal(err)
			}
		}
	} else if err := s.Look(w.ctx(), w.tenant, w.library, prefixed(w.prefix, keys)); err != nil {
		w.t.Fatal(err)
	}
}

func prefixed(prefix string, keys []string) (out []string) {
	for _, k := range keys {
		out = append(out, prefix+k)
	}
	return out
}

// People.

func (w *world) api(user int, method, path string, body any, status int) *testkit.Response {
	res := w.users[user].Do(method, path, body)
	if res.Status != status {
		w.t.Fatalf("%s %s: %d %s", method, path, res.Status, res.Body)
	}
	return res
}

func (w *world) people(o op) {
	var live []row
	for _, r := range w.books() {
		if r.Live {
			live = append(live, r)
		}
	}
	if len(live) == 0 {
		return
	}
	slices.SortFunc(live, func(a, b row) int { return strings.Compare(a.Key, b.Key) })
	r := live[o.A%len(live)]
	want := w.wants[r.ID]
	if want == nil {
		want = &wanted{created: r.Created}
		w.wants[r.ID] = want
	}
	if _, known := w.rows[r.ID]; !known {
		w.touched[w.files[r.Key].ident] = true
	}
	at := "/api/v1/books/" + r.ID.String()
	switch o.Kind {
	case "progress":
		page := 1 + o.B%max(1, r.Pages)
		w.api(o.C%2, "PUT", at+"/progress", map[string]any{"currentPage": page}, 200)
		want.pages[o.C%2] = page
	case "title":
		want.title = fmt.Sprintf("Mine %d", o.B)
		w.api(0, "PATCH", at, map[string]any{"title": want.title}, 200)
	case "number":
		n := float64(500 + o.B)
		want.number = &n
		w.api(0, "PATCH", at, map[string]any{"number": n}, 200)
	case "summary":
		want.summary = fmt.Sprintf("My summary %d", o.B)
		w.api(0, "PATCH", at+"/metadata", map[string]any{"summary": want.summary}, 200)
	}
}

// nameSeries sets a series' title, unless book titles are made from it.
func (w *world) nameSeries(o op) {
	some := values[uuid.UUID](w.rig, "select id from series where tenant_id = app.tenant() order by path")
	if len(some) == 0 || w.style.book == "series_name" {
		return
	}
	id := some[o.A%len(some)]
	w.titles[id] = fmt.Sprintf("My series %d", o.B)
	w.api(0, "PATCH", "/api/v1/series/"+id.String(), map[string]any{"title": w.titles[id]}, 200)
}

// purge purges missing books, and checks that no others go; they may stay while an unread file may be theirs.
func (w *world) purge() {
	w.idle()
	before := w.books()
	if values[bool](w.rig, "select "+scan.KeptOutSQL("$1"), w.library)[0] {
		w.api(0, "DELETE", "/api/v1/libraries/"+w.library.String()+"/purge-deleted", nil, 409)
		return
	}
	w.api(0, "DELETE", "/api/v1/libraries/"+w.library.String()+"/purge-deleted", nil, 200)
	w.idle()
	after := w.books()
	unread := values[bool](w.rig, "select exists (select from book b where b.tenant_id = app.tenant() and b.deleted_at is null and "+book.NeverReadSQL+")")[0]
	for id, r := range before {
		_, is := after[id]
		if is != r.Live && !(is && unread) {
			w.t.Errorf("purge: %s, live %v, is there %v", r.Key, r.Live, is)
		}
		if !r.Live && !is {
			delete(w.wants, id)
			delete(w.rows, id)
		}
	}
	for id, r := range w.rows {
		if _, is := after[id]; !is { // its leftovers were deleted in between
			delete(w.rows, id)
			w.t.Logf("%s is no more", r.Key)
		}
	}
}

// age moves all times of the tenant back by two hours.
func (r *rig) age() {
	const by = " - interval '2 hours'"
	for _, sql := range []string{
		"update book set created_at = created_at" + by + ", updated_at = updated_at" + by + ", deleted_at = deleted_at" + by + ", seen_at = seen_at" + by +
			", first_read_at = first_read_at" + by + ", placed_at = placed_at" + by,
		"update series set created_at = created_at" + by, "update displaced set at = at" + by, "update progress set updated_at = updated_at" + by,
		"update task set created_at = created_at" + by + ", started_at = started_at" + by + ", completed_at = completed_at" + by,
		"update library set last_scanned_at = last_scanned_at" + by + ", looked_at = looked_at" + by,
	} {
		r.exec(sql+" where tenant_id = $1", r.tenant)
	}
}

// age lets two hours pass.
func (w *world) age() {
	w.idle()
	if w.partial {
		w.unclear = true
	}
	w.rig.age()
	for id, r := range w.rows {
		r.Created = r.Created.Add(-2 * time.Hour)
		w.rows[id] = r
	}
	for _, want := range w.wants {
		want.created = want.created.Add(-2 * time.Hour)
	}
}

// sync scans the library completely, possibly after an interruption, and checks everything.
func (w *world) sync(mode string, o op, how string) {
	whole := slices.Contains([]string{"", "beside", "crew"}, how) // a complete scan, by one worker or several
	clean := !w.partial && whole
	if whole {
		w.idle()
	} else {
		w.noticed()
	}
	w.hopped()
	before := w.books()
	id := w.start(mode)
	switch how {
	case "":
	case "beside", "over":
		defer w.amid(1+o.A%8, 1+o.B%4, how == "over")()
	case "crew":
		w.together()
	case "crew-events":
		dirty := slices.Sorted(maps.Keys(w.dirty))
		w.together(func() { w.look(dirty, 1+o.A%2*4) }) // in an order, or all at once; it takes no tasks
	case "during":
		w.unclear = true
		var asked atomic.Int64
		var once sync.Once
		end := w.meddle(func() {
			if asked.Add(1) == int64(1+o.A) {
				once.Do(func() {
					w.change(op{[]string{"rename", "swap", "replace", "delete", "move-folder", "shift", "add", "break"}[o.B%8], o.C, o.B, o.A})
				})
			}
		})
		w.idle()
		end()
		if res := w.result(id); res.Status != task.Completed && res.Held == 0 && len(w.files) > 0 {
			w.t.Errorf("scan: %+v", res)
		}
		if len(w.files) == 0 {
			w.broken = true
			return
		}
		w.idle()
		id = w.start(mode) // changes during the first scan
		clean = false
	default:
		w.interrupted(id, 1+o.A%6, how)
		for range o.B % 4 {
			if some := w.pending(); len(some) > 0 {
				// A file that kills a worker twice is recorded as the cause.
				w.interrupted(some[o.B%len(some)], 1+o.C%5, strings.ReplaceAll(how, "kill", "stop"))
			}
		}
	}
	res := w.finish(id)
	if len(w.files) > 0 && res.Status == task.Failed && res.Held > 0 {
		res, clean = w.held(before, res), false
	} else if how == "" && len(w.files) > 0 {
		w.unheld(before, w.books())
	}
	if len(w.files) == 0 {
		w.broken = true
		if len(before) > 0 && res.Status == task.Completed && res.Deleted > 0 {
			w.t.Errorf("a scan of an empty folder: %+v", res)
		}
		w.noticed()
		return
	}
	if res.Status != task.Completed || res.Total != int64(len(w.files)) || res.Processed != res.Total {
		w.t.Errorf("scan: %+v, failed with %s; there are %d files", res, deref(res.Failure), len(w.files))
		return
	}
	now := w.books()
	if clean && mode == scan.Normal && !w.dirtyBeside() {
		w.counts(before, now, res)
	}
	w.check(now)
	w.quiet()
}

// dirtyBeside reports whether sidecars have changed: the books read again for them do not belong to the scan, and may
// move.
func (w *world) dirtyBeside() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(w.dirty)), func(key string) bool { return path.Ext(key) != ".cbz" })
}

func deref(s *string) string {
	if s == nil {
		return "nothing"
	}
	return *s
}

// announced looks at everything that changed, and checks everything, without a scan.
func (w *world) announced(o op) {
	w.look(slices.Sorted(maps.Keys(w.dirty)), o.A)
	w.idle()
	if w.broken { // another scan does what one has left
		return
	}
	w.check(w.books())
	if len(w.files) > 0 && !w.style.purges { // the scan would remove what was announced as deleted
		w.quiet()
	}
}

// quiet checks that another scan changes nothing.
func (w *world) quiet() {
	const stamps = `select 'book ' || key || ' ' || xmin from book where tenant_id = app.tenant() union all select 'series ' || path || ' ' || xmin from series where tenant_id = app.tenant()
		union all select 'sidecar ' || key || ' ' || xmin from sidecar where tenant_id = app.tenant() order by 1`
	before := values[string](w.rig, stamps)
	res := w.finish(w.start(scan.Normal))
	if res.Status != task.Completed || res.Created+res.Updated+res.Deleted+res.Restored+res.Moved+res.Series+res.Errors != 0 {
		w.t.Errorf("a second scan: %+v", res)
	}
	if after := values[string](w.rig, stamps); !slices.Equal(before, after) {
		w.t.Errorf("a second scan has written: %q, before %q", after, before)
	}
}
