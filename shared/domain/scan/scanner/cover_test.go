package scanner_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

// newCovers scans and returns the entities with a cover event.
func (r *rig) newCovers() (told []string) {
	r.t.Helper()
	r.mu.Lock()
	r.events = nil
	r.mu.Unlock()
	r.scanned("normal")
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind != "cover_updated" {
			continue
		}
		var data struct {
			Type    string    `json:"entity_type"`
			ID      uuid.UUID `json:"entity_id"`
			Library uuid.UUID `json:"library_id"`
		}
		if b, err := json.Marshal(e.Data); err != nil || json.Unmarshal(b, &data) != nil || data.Library != r.library {
			r.t.Errorf("%+v, %v", e, err)
		}
		name := values[string](r, `select key from book where tenant_id = app.tenant() and id = $1
			union all select path from series where tenant_id = app.tenant() and id = $1`, data.ID)
		told = append(told, data.Type+" "+name[0])
	}
	slices.Sort(told)
	return told
}

// A series shows the cover of a book: an event says when that changes.
func TestSeriesShowsANewCover(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	write := func(name string, seed int) { testkit.WriteFile(t, r.folder, name, testkit.Comic(t, seed, 2, "")) }
	expect := func(what string, want ...string) {
		t.Helper()
		if got := r.newCovers(); !slices.Equal(got, want) {
			t.Errorf("%s: told of %q, want %q", what, got, want)
		}
	}
	write("A/A 1.cbz", 1)
	write("A/A 2.cbz", 2)
	write("B/B 1.cbz", 3)
	expect("found", "book A/A 1.cbz", "book A/A 2.cbz", "book B/B 1.cbz", "series A", "series B")
	expect("the same")
	write("A/A 2.cbz", 12)
	expect("the second book is another one", "book A/A 2.cbz")
	write("A/A 1.cbz", 11)
	expect("the first one is", "book A/A 1.cbz", "series A")
	r.remove("A/A 2.cbz")
	expect("the second book is gone")
	write("A/A 2.cbz", 12)
	expect("it is back")
	r.remove("A/A 1.cbz")
	expect("the first one is gone", "series A")
	write("A/A 1.cbz", 11)
	expect("it is back", "series A")
	if _, err := r.db.Owner.Pool().Exec(t.Context(), "update series s set cover_source = 'book:' || b.id from book b where b.series_id = s.id and b.key = 'A/A 2.cbz'"); err != nil {
		t.Fatal(err)
	}
	write("A/A 1.cbz", 21)
	expect("another one was chosen", "book A/A 1.cbz")
	write("A/A 2.cbz", 22)
	expect("the chosen one is another one", "book A/A 2.cbz", "series A")
	testkit.WriteFile(t, r.folder, "B/cover.jpg", testkit.JPEG(t, 20, 30, 1))
	expect("a picture beside the books", "series B")
	write("B/B 1.cbz", 13)
	expect("the picture is shown", "book B/B 1.cbz")
	for i, page := range []int{1, 0, 2} { // each in a file of another size: they are written within a second
		testkit.WriteFile(t, r.folder, "A/A 2.cbz", testkit.Comic(t, 22, 3, fmt.Sprintf(`<Pages><Page Image="%d" Type="FrontCover"/></Pages>%s`, page, "abcdefghijkl"[:4*i])))
		expect(fmt.Sprintf("page %d is the cover", page+1), "book A/A 2.cbz", "series A")
	}
	testkit.WriteFile(t, r.folder, "A/A 2.cbz", testkit.Comic(t, 22, 3, `<Pages><Page Image="2" Type="FrontCover"/></Pages><Title>New</Title>`))
	expect("the cover stays")
}
