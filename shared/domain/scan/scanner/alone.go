package scanner

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/longbox/longbox/shared/domain/analysis"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
)

// maxDeaths is how many workers may die before a task fails like any other; files of other tasks may have caused
// deaths, too.
const maxDeaths = 100

// defaultKills is how many workers must have died while reading only this file, for its book to be recorded as the
// cause.
const defaultKills = 2

// suspects records the books of a task whose worker has died; it is passed on to the next run.
type suspects struct {
	Reading *uuid.UUID        `json:",omitempty"` // the book being read alone
	Deaths  int               `json:",omitempty"` // of the task at that time
	Killed  map[uuid.UUID]int `json:",omitempty"` // how many workers have died while reading it alone
}

// judge counts the death of the worker that was reading a book alone.
func (s *suspects) judge(deaths int) {
	if s.Reading != nil && deaths > s.Deaths {
		if s.Killed == nil {
			s.Killed = map[uuid.UUID]int{}
		}
		s.Killed[*s.Reading]++
	}
	s.Reading, s.Deaths = nil, deaths
}

// ids returns the suspected books.
func (s *suspects) ids() []uuid.UUID {
	out := make([]uuid.UUID, 0, len(s.Killed))
	for id := range s.Killed {
		out = append(out, id)
	}
	return out
}

// analyzeAlone continues after a worker has died with these books: it reads them one by one, records each before
// reading it, and reads nothing else in this process. So the book that kills the next worker is known. A suspect is
// read last: workers die for other reasons, too, and the second death must not be the same accident.
func (s *Scanner) analyzeAlone(ctx context.Context, h task.Held, books []bookRow, at analysisPlace) (any, error) {
	died := h.Deaths > at.Deaths
	at.judge(h.Deaths)
	if died && h.Deaths <= maxDeaths { // each death yields a finding, so it is no attempt; a failure after a death is
		if _, err := db.Exec(ctx, s.Database, "update task set attempts = 1, place = $2 where tenant_id = app.tenant() and id = $1", h.ID, toJSON(at)); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(books, func(a, b bookRow) int { return cmp.Compare(at.Killed[a.ID], at.Killed[b.ID]) })
	var lost unread
	for i, b := range books {
		switch {
		case lost.err != nil && (blob.Unreachable(lost.err) || task.MustPause(ctx)): // as in analyze
			return nil, lost.explain(len(books))
		case i > 0 && task.MustPause(ctx):
			return nil, task.Paused(at)
		}
		var p partly
		var err error
		if at.Killed[b.ID] >= cmp.Or(s.Kills, defaultKills) {
			err = s.record(ctx, h, []analyzed{{bookRow: b, problem: &analysis.Problem{Type: "killed",
				Message: "reading the file crashed the worker twice, perhaps because it needs too much memory. It is skipped until it changes or is retried"}}})
		} else {
			p, err = s.analyzeSuspect(ctx, h, b, at)
		}
		if err != nil {
			return nil, err
		}
		if lost.add(p.unread); lost.err != nil { // the checkpoint stays before what was not read
			continue
		}
		if at.Killed[b.ID] == 0 {
			at.From = b.Key + after
		}
		delete(at.Killed, b.ID)
		at.Done++
	}
	if lost.err != nil {
		return nil, lost.explain(len(books))
	}
	return map[string]int{"booksAnalyzed": at.Done}, nil
}

// lastOfInvocation is more than the time before the end of an invocation at which its tasks must pause.
const lastOfInvocation = 30 * time.Second

// analyzeSuspect records a book, and then reads it with nothing beside it.
func (s *Scanner) analyzeSuspect(ctx context.Context, h task.Held, b bookRow, at analysisPlace) (p partly, err error) {
	err = s.alone.hold(ctx, everyone, func() error {
		// The end of the invocation could pass for the book's fault. If others only want the slot, it is the book's turn.
		if end, ends := ctx.Deadline(); ends && time.Until(end) < lastOfInvocation && task.MustPause(ctx) {
			return task.Paused(at)
		}
		at.Reading = &b.ID
		if _, err := db.Exec(ctx, s.Database, "update task set place = $2 where tenant_id = app.tenant() and id = $1", h.ID, toJSON(at)); err != nil {
			return err
		}
		p, err = s.analyzePart(ctx, h, []bookRow{b})
		return err
	})
	return p, err
}

// Reading calls read, which reads a few books, while no suspected book is read: a worker that dies then has died of
// that book. A suspect waits for all calls that came before it, and later ones wait for the suspect, so read must be
// short. Waiting ends with ctx.
func (s *Scanner) Reading(ctx context.Context, read func() error) error {
	return s.alone.hold(ctx, 1, read)
}

// Beside wraps a handler that reads one book in Reading.
func (s *Scanner) Beside(handle task.Handler) task.Handler {
	return func(ctx context.Context, h task.Held) (out any, err error) {
		err = s.Reading(ctx, func() error {
			out, err = handle(ctx, h)
			return err
		})
		return out, err
	}
}

// everyone is the whole weight of alone.
const everyone = math.MaxInt64

// alone lets many read at the same time, or one with the weight of everyone, in the order in which they come.
type alone struct {
	once sync.Once
	sem  *semaphore.Weighted
}

// hold calls read with a part of the weight.
func (a *alone) hold(ctx context.Context, weight int64, read func() error) error {
	a.once.Do(func() { a.sem = semaphore.NewWeighted(everyone) })
	if err := a.sem.Acquire(ctx, weight); err != nil {
		return err
	}
	defer a.sem.Release(weight)
	return read()
}
