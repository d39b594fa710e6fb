package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/format/naming"
)

// fixtureShelves are the folders of real works, with the expectation for every file in them: pages, or either pages or
// an error that names the cause.
var fixtureShelves = []struct {
	name     string
	readable bool
}{{"library", true}, {"archives", false}, {"odd", true}, {"broken", false}}

// fixtureRow is the result for one file.
type fixtureRow struct {
	ID        uuid.UUID `db:"id"`
	Key       string    `db:"key"`
	Format    string    `db:"format"`
	Pages     int       `db:"page_count"`
	Title     string    `db:"title"`
	Number    *float64  `db:"number"`
	Direction string    `db:"direction"`
	Language  string    `db:"language"`
	Error     string    `db:"error"`
	Warnings  []string  `db:"warnings"`
}

// known are facts about some of the works. Zero values are not compared.
var known = map[string]fixtureRow{
	"manga/ハルコさんの彼氏/ハルコさんの彼氏 v01 c001.cbz":                                       {Pages: 6, Title: "第一話", Number: at(1), Direction: "rtl", Language: "ja"},
	"manga/ハルコさんの彼氏/ハルコさんの彼氏 v02.cb7":                                            {Pages: 4},
	"manga/鳥の眼/鳥の眼 001.cbz":                                                      {Pages: 11, Number: at(1), Direction: "webtoon"},
	"manga/Emakimono/Emakimono 10.5.cbz":                                         {Pages: 22, Number: at(10.5)},
	"comics/Delcourt/Page Blanche (2012)/Page Blanche #001 (2012) (digital).cbz": {Pages: 9, Number: at(1)},
	"comics/Delcourt/Page Blanche (2012)/Page Blanche #002 (2012) (digital).cbz": {Number: at(2)},
	"comics/Delcourt/Page Blanche (2012)/Page Blanche #010 (2012) (digital).cbz": {Number: at(10)},
	"books/Boulet/Page Blanche.pdf":                                              {Pages: 5},
}

func at(n float64) *float64 { return &n }

// fixtures scans the folder of real works in FIXTURES and prints the result for every file. Results that differ from
// its README are misses. For broken files it measures time and memory.
func fixtures(ctx context.Context, s *system, out *report) error {
	dir := os.Getenv("FIXTURES")
	if dir == "" {
		out.note("FIXTURES is not set: name a folder of real works")
		return nil
	}
	api, err := s.function(ctx, "api")
	if err != nil {
		return err
	}
	defer api.Stop()
	for _, shelf := range fixtureShelves {
		worker, err := s.function(ctx, "worker")
		if err != nil {
			return err
		}
		defer worker.Stop()
		files, err := s.copyBooks(filepath.Join(dir, shelf.name), "fixtures-"+shelf.name)
		if err != nil {
			return err
		}
		library, err := newClient(s.token).addLibrary(ctx, api, object{"name": shelf.name,
			"path": filepath.Join(s.books, "fixtures-"+shelf.name), "bookStrategy": "metadata_first", "numberStrategy": "smart"})
		if err != nil {
			return err
		}
		if _, err := s.scanAny(ctx, api, library, len(files)); err != nil {
			return fmt.Errorf("%s: %w", shelf.name, err)
		}
		rows, err := s.fixtureRows(ctx, library)
		if err != nil {
			return err
		}
		misses := compareFixtures(out, shelf.name, shelf.readable, files, rows)
		out.atMost(fmt.Sprintf("%s: files not as they should be, of %d", shelf.name, len(files)), float64(misses), 0, "")
		if shelf.name == "broken" {
			if err := s.timeBroken(ctx, api, out, rows); err != nil {
				return err
			}
		}
		peak, err := memory(worker.pid, "VmHWM")
		if err != nil {
			return err
		}
		if shelf.name == "broken" {
			out.atMost("peak memory of the worker with broken", peak, 256, "MB")
		} else {
			out.info("peak memory of the worker with "+shelf.name, peak, "MB")
		}
		worker.Stop()
	}
	return nil
}

// copyBooks copies the books of a folder into the library root and returns their names below it.
func (s *system) copyBooks(from, to string) (files []string, err error) {
	err = filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || naming.Format(path) == "" {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(s.books, to, name)
		files = append(files, filepath.ToSlash(name))
		return errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, data, 0o644))
	})
	return files, err
}

func (s *system) fixtureRows(ctx context.Context, library uuid.UUID) (map[string]fixtureRow, error) {
	rows, err := s.admin.Query(ctx, `select b.id, b.key, b.format, b.page_count, b.title, b.number, coalesce(b.reading_direction, '') as direction,
		coalesce(m.metadata->>'languageIso', '') as language, coalesce(b.error_type || ': ' || b.error_message, '') as error, coalesce(m.warnings, '{}') as warnings
		from book b left join book_metadata m on m.tenant_id = b.tenant_id and m.book_id = b.id where b.library_id = $1`, library)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[fixtureRow])
	out := map[string]fixtureRow{}
	for _, r := range list {
		out[r.Key] = r
	}
	return out, err
}

func compareFixtures(out *report, shelf string, readable bool, files []string, rows map[string]fixtureRow) (misses int) {
	for _, name := range files {
		r, ok := rows[name]
		number, mark := "-", " "
		if r.Number != nil {
			number = fmt.Sprint(*r.Number)
		}
		wrong := !ok || r.Pages == 0 && r.Error == "" || readable && (r.Error != "" || r.Pages == 0)
		if want, is := known[name]; is && shelf == "library" {
			wrong = wrong || want.Pages > 0 && r.Pages != want.Pages || want.Title != "" && r.Title != want.Title || want.Language != "" && r.Language != want.Language ||
				want.Direction != "" && r.Direction != want.Direction || want.Number != nil && (r.Number == nil || *r.Number != *want.Number)
		}
		if wrong {
			misses, mark = misses+1, "!"
		}
		out.note("%s %s/%s | %s | %d pages | %s | number %s | %s %s | %s", mark, shelf, name, r.Format, r.Pages, r.Title, number, r.Language, r.Direction,
			strings.Join(append([]string{r.Error}, r.Warnings...), " "))
	}
	return misses
}

// timeBroken analyses each file again on its own and prints the longest time, from the claim of its task to its end.
func (s *system) timeBroken(ctx context.Context, api *function, out *report, rows map[string]fixtureRow) error {
	longest, name := 0.0, ""
	for key, r := range rows {
		var task struct {
			ID uuid.UUID `json:"taskId"`
		}
		if err := newClient(s.token).call(ctx, http.MethodPost, api.url+"/api/v1/books/"+r.ID.String()+"/analyze", nil, &task); err != nil {
			return err
		}
		seconds, err := s.ended(ctx, task.ID)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if seconds > longest {
			longest, name = seconds, key
		}
	}
	out.atMost("longest time for one broken file", longest, 60, "s")
	out.note("  %s", name)
	return nil
}

// ended waits for a task and returns its duration, in seconds by the database's clock.
func (s *system) ended(ctx context.Context, id uuid.UUID) (float64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the task has not ended after %v", patience))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var seconds *float64
		err := s.admin.QueryRow(ctx, "select extract(epoch from completed_at - started_at)::float8 from task where id = $1", id).Scan(&seconds)
		switch {
		case err != nil:
			return 0, errors.Join(err, context.Cause(ctx))
		case seconds != nil:
			return *seconds, nil
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-tick.C:
		}
	}
}
