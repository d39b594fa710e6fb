package export_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

// Every field belongs to its own series or book, and personal fields to the caller.
func TestFieldsTellOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me, other := r.User(t, "one", "reader"), r.User(t, "one", "reader")
	saga, rest := r.addSeries(r.library, "Saga", 3), r.addSeries(r.library, "Zoo", 1)
	for i, id := range []uuid.UUID{saga, rest} {
		tag := uuid.New()
		r.exec("insert into tag (tenant_id, id, name) values ($1, $2, $3)", r.One, tag, fmt.Sprint("tag ", i))
		r.exec("insert into series_tag (tenant_id, series_id, tag_id) values ($1, $2, $3)", r.One, id, tag)
		r.exec("insert into external_rating (tenant_id, id, series_id, source_name, rating) values ($1, gen_random_uuid(), $2, 'x', $3)", r.One, id, 50+40*i)
		r.exec("insert into external_id (tenant_id, id, series_id, source, external_id) values ($1, gen_random_uuid(), $2, 'anilist', $3)", r.One, id, fmt.Sprint(i))
	}
	// In the first series I have read a book, opened and closed another, and read one that is gone; the other user has
	// read and rated all.
	at := func(day int) time.Time { return time.Date(2026, 1, day, 3, 4, 5, 0, time.UTC) }
	read := func(c *testkit.Client, title string, page int, completed bool, day int) {
		r.exec(`insert into progress (tenant_id, account_id, book_id, id, current_page, completed, started_at, completed_at, updated_at)
			select $1, $2, id, gen_random_uuid(), $4, $5, $6, case when $5 then $7::timestamptz end, $8 from book where title = $3`, r.One, c.ID, title, page, completed, at(day), at(day+1), at(day+2))
		if completed {
			r.exec("insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at) select $1, gen_random_uuid(), $2, id, $4, $5 from book where title = $3", r.One, c.ID, title, at(day), at(day+1))
		}
	}
	read(me, "Saga 1", 20, true, 1)
	r.exec(`insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at, forgotten)
		select $1, gen_random_uuid(), $2, id, $3, $4, true from book where title = 'Saga 1'`, r.One, me.ID, at(-9), at(-8)) // the user has removed this one
	read(me, "Saga 2", 0, false, 1)
	read(me, "Saga 3", 20, true, 20)
	r.exec("update book set deleted_at = now() where title = 'Saga 3'")
	for _, title := range []string{"Saga 1", "Saga 2", "Zoo 1"} {
		read(other, title, 20, true, 10)
	}
	for _, s := range []uuid.UUID{saga, rest} {
		r.exec("insert into series_rating (tenant_id, account_id, series_id, id, rating) values ($1, $2, $3, gen_random_uuid(), 10)", r.One, other.ID, s)
		r.exec("insert into wanted (tenant_id, account_id, id, series_id, place) values ($1, $2, gen_random_uuid(), $3, 1)", r.One, other.ID, s)
	}
	r.exec("insert into wanted (tenant_id, account_id, id, book_id, place) select $1, $2, gen_random_uuid(), id, 3 from book where title = 'Saga 1'", r.One, other.ID)
	r.exec(`insert into book_metadata (tenant_id, book_id, metadata) select $1, id, '{"isbns":"978","languageIso":"fr","bookType":"manga","year":1999,"subjects":["b","a"]}' from book where title = 'Saga 1'
		on conflict (tenant_id, book_id) do update set metadata = excluded.metadata`, r.One)
	capital := uuid.New() // names sort ignoring case, as in the lists
	r.exec("insert into tag (tenant_id, id, name) values ($1, $2, 'Zebra')", r.One, capital)
	r.exec("insert into series_tag (tenant_id, series_id, tag_id) values ($1, $2, $3)", r.One, saga, capital)
	one := func(kind, fields string) (out []map[string]any) {
		t.Helper()
		var document map[string][]map[string]any
		text := r.made(me, fmt.Sprintf(`{"format":"json","exportType":%q,%q:[%s]}`, kind, map[string]string{"series": "fields", "books": "bookFields"}[kind], fields))
		if err := json.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		return document[kind]
	}
	series := one("series", `"tags","externalRating","externalIds","userRating","wantToRead","booksRead","booksInProgress","booksUnread","lastReadAt","readStatus"`)
	got := []string{}
	for _, s := range series {
		got = append(got, fmt.Sprintln(s["title"], s["tags"], s["externalRating"], s["externalIds"], s["userRating"], s["wantToRead"], s["booksRead"], s["booksInProgress"], s["lastReadAt"], s["readStatus"]))
	}
	if want := "Saga [tag 0 Zebra] 50 [anilist:0] <nil> false 1 0 2026-01-03T03:04:05Z in_progress\nZoo [tag 1] 90 [anilist:1] <nil> false 0 0 <nil> unread\n"; strings.Join(got, "") != want {
		t.Errorf("series:\n%s, want\n%s", strings.Join(got, ""), want)
	}
	got = nil
	for _, b := range one("books", `"isbns","language","bookType","year","subjects","readStatus","wantToRead","readCount","startedAt","completedAt","lastReadAt"`) {
		got = append(got, fmt.Sprintln(b["title"], b["isbns"], b["language"], b["bookType"], b["year"], b["subjects"], b["readStatus"], b["wantToRead"], b["readCount"], b["startedAt"], b["completedAt"], b["lastReadAt"]))
	}
	if want := "Saga 1 978 fr manga 1999 [b a] read false 1 2026-01-01T03:04:05Z 2026-01-02T03:04:05Z 2026-01-03T03:04:05Z\n"; len(got) != 3 || got[0] != want {
		t.Errorf("books:\n%s, want first\n%s", strings.Join(got, ""), want)
	}
}
