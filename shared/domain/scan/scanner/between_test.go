package scanner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/testkit"
)

// betweenKinds are the events that may happen to the files of two libraries; repeated ones are more frequent.
var betweenKinds = strings.Fields("move move move move move-folder rename rename delete back back scan scan scan scan noticed read read read purge age nuke")

// between are two libraries of one tenant, in the folders a and b, with books of six works, each of which is one file.
type between struct {
	*rig
	prefix    string // of the keys of both
	purges    bool   // after every scan
	libraries [2]uuid.UUID
	works     []*work
}

// work is the expected state of a work.
type work struct {
	data    []byte
	at      string         // its file, below the folder of both libraries; empty if neither has it
	readers map[string]int // the page of each
	missed  [2]bool        // by library: a look there did not find it, and it was not found elsewhere since
	astray  [2]bool        // and neither did a later scan of the other library
	lost    bool           // its readers may be forgotten (lose)
	own     []string       // places that it had; no other file comes there
}

// TestNothingIsLostBetweenLibraries moves files between two libraries that are scanned at random times. At the end
// every reader must be on their page. MODEL_RUNS and MODEL_SEED set duration and seed.
func TestNothingIsLostBetweenLibraries(t *testing.T) {
	t.Parallel()
	s := &stage{Server: &testkit.Server{DB: testkit.DB(t)}, s3: testkit.StartS3(t, "books")}
	first := number(t, "MODEL_SEED", 1)
	for seed := range number(t, "MODEL_RUNS", 4) {
		random := rand.New(rand.NewPCG(1, uint64(first+seed)))
		ops := anyOps(random, betweenKinds, 30)
		purges := random.IntN(2) == 0 // after every scan
		if wrong := s.playBetween(t, purges, ops); len(wrong) > 0 {
			ops, wrong = shrink(ops, wrong, func(ops []op) []string { return s.playBetween(t, purges, ops) })
			t.Fatalf("MODEL_SEED=%d, purges %v:\n%v\n%s", first+seed, purges, ops, strings.Join(wrong, "\n"))
		}
	}
}

// TestScansForgotten deletes, with DELETE /tasks/nuke, the scans that tell since when a file may be in another library.
func TestScansForgotten(t *testing.T) {
	t.Parallel()
	s := &stage{Server: &testkit.Server{DB: testkit.DB(t)}, s3: testkit.StartS3(t, "books")}
	read, move, old := op{Kind: "read", C: 4}, op{Kind: "move", B: 1}, op{Kind: "age"}
	left, came, nuke, rename := op{Kind: "scan", A: 0}, op{Kind: "scan", A: 1}, op{Kind: "nuke"}, op{Kind: "rename", B: 2, C: 1}
	for _, ops := range [][]op{
		{read, move, came, nuke, left},
		{read, nuke, move, came, left},
		{read, nuke, move, came, old, left},
		{read, move, left, nuke, came},
		{read, nuke, move, left, came},
		{read, move, left, old, nuke, came},
		{read, nuke, rename, left},
		{read, old, nuke, rename, old, left},
	} {
		if wrong := s.playBetween(t, false, ops); len(wrong) > 0 {
			t.Errorf("%v: %s", ops, strings.Join(wrong, "\n"))
		}
	}
}

func (s *stage) playBetween(t *testing.T, purges bool, ops []op) (wrong []string) {
	defer func() {
		if p := recover(); p != nil && p != (stopped{}) {
			panic(p)
		}
	}()
	n := s.runs.Add(1)
	how := style{series: "series_volume", book: "metadata_first", number: "smart", purges: purges}
	prefix := fmt.Sprintf("m%d/", n)
	w := &between{rig: s.rig(reports{t, &wrong, new(sync.Mutex)}, fmt.Sprintf("m%d", n), prefix+"a/", how), prefix: prefix, purges: purges}
	w.folder = filepath.Dir(w.folder)
	w.libraries = [2]uuid.UUID{w.library, uuid.New()}
	w.exec("update library set name = 'a' where id = $1", w.library) // names are unique
	w.library = w.libraries[1]
	w.shelve(prefix+"b/", how)
	defer func() {
		if _, err := w.db.Owner.Pool().Exec(context.Background(), "delete from tenant where id = $1", w.tenant); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(w.folder); err != nil {
			t.Error(err)
		}
	}()
	for i := range 3 {
		testkit.WriteFile(t, w.folder, fmt.Sprintf("a/Other/%d.cbz", i), testkit.Comic(t, 9000+i, 1, ""))
		testkit.WriteFile(t, w.folder, fmt.Sprintf("b/Other/%d.cbz", i), testkit.Comic(t, 9100+i, 1, ""))
	}
	for i := range 6 {
		one := &work{data: testkit.Comic(t, i, 12, ""), at: fmt.Sprintf("%s/S%d/%d.cbz", []string{"a", "b"}[i/4], i%2, i), readers: map[string]int{}}
		one.own = []string{one.at}
		w.works = append(w.works, one)
		testkit.WriteFile(t, w.folder, one.at, one.data)
	}
	for _, o := range append([]op{{Kind: "scan", A: 0}, {Kind: "scan", A: 1}}, ops...) {
		w.do(o)
	}
	for _, library := range []int{0, 1} {
		w.do(op{Kind: "scan", A: library})
	}
	w.check()
	return wrong
}

// lose forgets who has read a work; later readers must be there at the end.
func (one *work) lose() {
	one.lost, one.readers = true, map[string]int{}
}

// book returns the library's book for a file, and whether it is readable.
func (w *between) book(at string) (id string, readable bool) {
	for _, id := range values[string](w.rig, "select id || ' ' || analyzed from book where tenant_id = app.tenant() and library_id = $1 and key = $2 and deleted_at is null",
		w.libraries[at[0]-'a'], at[2:]) {
		id, analyzed, _ := strings.Cut(id, " ")
		return id, analyzed == "true"
	}
	return "", false
}

func (w *between) free(one *work, at string) bool {
	for _, other := range w.works {
		if other != one && slices.Contains(other.own, at) || other.at == at {
			return false
		}
	}
	return true
}

func (w *between) move(one *work, to string) {
	if !w.free(one, to) {
		return
	}
	if one.at == "" {
		testkit.WriteFile(w.t, w.folder, to, one.data)
	} else {
		w.rename(one.at, to)
	}
	if id, _ := w.book(to); id != "" { // it is back before anybody missed it: progress made elsewhere was in a copy
		one.lose()
	}
	one.at, one.own = to, append(one.own, to)
}

func (w *between) settle() {
	w.until("not exists (select from task where tenant_id = app.tenant() and status in ('pending', 'running'))")
}

func (w *between) do(o op) {
	one := w.works[o.A%len(w.works)]
	place := fmt.Sprintf("%c/S%d/%d%s.cbz", 'a'+o.B%2, o.B/2%3, o.A%len(w.works), []string{"", "x"}[o.C%2])
	switch o.Kind {
	case "move", "back":
		if (one.at == "") == (o.Kind == "back") {
			w.move(one, place)
		}
	case "rename":
		if one.at != "" {
			w.move(one, one.at[:1]+place[1:])
		}
	case "move-folder":
		folder := fmt.Sprintf("%c/S%d/", 'a'+o.A%2, o.A/2%3)
		for _, one := range w.works {
			if rest, is := strings.CutPrefix(one.at, folder); is {
				w.move(one, fmt.Sprintf("%c/S%d/%s", 'a'+o.B%2, o.B/2%3, rest))
			}
		}
	case "delete":
		if one.at != "" {
			if err := os.Remove(filepath.Join(w.folder, one.at)); err != nil {
				w.t.Fatal(err)
			}
			one.at = ""
		}
	case "scan":
		w.library = w.libraries[o.A%2]
		if res := w.scan("normal"); res.Status != task.Completed || res.Errors > 0 {
			w.t.Errorf("scan: %+v", res)
		}
		w.settle()
		for _, one := range w.works {
			here, there := o.A%2, 1-o.A%2
			if one.at != "" && int(one.at[0]-'a') == here {
				one.missed, one.astray = [2]bool{}, [2]bool{}
				continue
			}
			if w.purges && one.astray[here] {
				one.lose()
			}
			one.missed[here], one.astray[there] = true, one.missed[there]
		}
	case "noticed":
		at := one.own[len(one.own)-1-o.B%min(2, len(one.own))]
		w.library = w.libraries[at[0]-'a']
		w.noticed(w.prefix + at)
		w.settle()
		if at == one.at {
			one.missed, one.astray = [2]bool{}, [2]bool{}
		} else {
			one.missed[at[0]-'a'] = true
		}
	case "read":
		if one.at == "" {
			return
		}
		if id, readable := w.book(one.at); readable {
			user := []string{"ann", "bob"}[o.B%2]
			account := uuid.NewSHA1(w.tenant, []byte(user))
			w.exec(`insert into account (tenant_id, id, username, email, password_hash, role) values ($1, $2, $3, $3 || '@example.org', '', 'reader') on conflict do nothing`, w.tenant, account, user)
			w.exec(`insert into progress (tenant_id, account_id, book_id, id, current_page) values ($1, $2, $3, gen_random_uuid(), $4)
				on conflict (tenant_id, account_id, book_id) do update set current_page = excluded.current_page, updated_at = now()`, w.tenant, account, id, 1+o.C%12)
			one.readers[user] = 1 + o.C%12
		}
	case "purge":
		for _, one := range w.works {
			if one.at == "" {
				one.lose()
			} else if id, _ := w.book(one.at); id == "" { // nobody knows where it is now
				one.lose()
			}
		}
		w.purged(w.libraries[o.A%2])
	case "age":
		for _, one := range w.works {
			// Announced in one place, but not in the other for an hour.
			if one.at != "" && slices.ContainsFunc(one.own, func(old string) bool {
				id, _ := w.book(old)
				return old != one.at && old[0] == one.at[0] && id != ""
			}) {
				if id, _ := w.book(one.at); id != "" {
					one.lose()
				}
			}
		}
		w.age()
	case "nuke": // DELETE /tasks/nuke
		w.exec("delete from task where tenant_id = $1", w.tenant)
	}
}

// check compares the actual with the expected state.
func (w *between) check() {
	live := map[string][]string{} // readable books by place: "read", and each reader's page
	for _, row := range values[string](w.rig, `select concat_ws(' ', case when b.library_id = $1 then 'a/' else 'b/' end || b.key, case when b.analyzed and array_length(p.names, 1) = b.page_count then 'read' end,
		(select string_agg(a.username || '=' || g.current_page, ' ') from progress g join account a on a.tenant_id = g.tenant_id and a.id = g.account_id
		 where g.tenant_id = b.tenant_id and g.book_id = b.id))
		from book b left join page_index p on p.tenant_id = b.tenant_id and p.book_id = b.id
		where b.tenant_id = app.tenant() and b.key not like 'Other/%' and b.deleted_at is null`, w.libraries[0]) {
		words := strings.Fields(row)
		live[words[0]] = words[1:]
	}
	for i, one := range w.works {
		if one.at == "" {
			continue
		}
		got, want := live[one.at], []string{"read"}
		delete(live, one.at)
		for user, page := range one.readers {
			want = append(want, fmt.Sprintf("%s=%d", user, page))
		}
		missing := slices.ContainsFunc(want, func(word string) bool { return !slices.Contains(got, word) })
		if missing || len(got) != len(want) && !one.lost {
			w.t.Errorf("work %d at %s: %q, want %q, lost %v", i, one.at, got, want, one.lost)
		}
	}
	for at, words := range live {
		w.t.Errorf("%s has no file: %q", at, words)
	}
}
