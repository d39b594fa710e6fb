package progress

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// device is who told of what was read, where a client says no more than that: the device that it names, else its key or its kind.
func device(ctx context.Context) string {
	if id := strings.ToValidUTF8(httpapi.Device(ctx), ""); id != "" {
		return id
	}
	if c := auth.CallerOf(ctx); c != nil && len(c.KeyHash) > 8 {
		return "apikey:" + hex.EncodeToString(c.KeyHash[:8])
	}
	if agent := httpapi.UserAgent(ctx); agent != "" {
		sum := sha256.Sum256([]byte(agent))
		return "ua:" + hex.EncodeToString(sum[:8])
	}
	return "legacy"
}

// problem is why a session is refused whatever its book, or "".
func (s *Session) problem() string {
	switch {
	case s.ClientEndedAt.Before(s.ClientStartedAt):
		return "invalid_time_range"
	case s.ToPercentage != nil && !(*s.ToPercentage >= 0 && *s.ToPercentage <= 1):
		return "invalid_percentage"
	case negative(s.ToPage) || negative(s.PagesRead) || negative(s.ActiveDurationMS):
		return "invalid_measurement"
	}
	return ""
}

func negative[T int32 | int64](n *T) bool { return n != nil && *n < 0 }

// recordSQL logs a session of a book that is there, also of one whose file is gone at the moment. It is of the pass that was open
// when it ended: what was read before a book was marked unread, and is told later, does not bring it back. A clock ahead of ours
// must not outdo what is said later: nothing ends in the future.
const recordSQL = `insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, device_name, started_at, ended_at, page, percentage,
	  active_ms, pages_read, locator)
	select b.tenant_id, app.account(), $1, b.id, case when $3 = 'reset' then 1 + o.last else coalesce(o.open, 1) end, $3, $4, $5, t.started_at, t.ended_at,
	  case when $3 <> 'reset' then $8::integer end, case when $3 <> 'reset' then $9::double precision end,
	  least($10::bigint, (extract(epoch from t.ended_at - t.started_at) * 1000)::bigint), $11, $12
	from book b
	cross join lateral (select least($6::timestamptz, now()) as started_at, least($7::timestamptz, now()) as ended_at) t
	cross join lateral (select coalesce(max(s.pass), 0) as last, coalesce(max(s.pass) filter (where s.kind = 'reset' and s.ended_at <= t.ended_at), min(s.pass)) as open
	  from reading_session s where s.tenant_id = app.tenant() and s.account_id = app.account() and s.book_id = b.id) o
	where b.tenant_id = app.tenant() and b.id = $2
	on conflict (tenant_id, account_id, id) do nothing`

// absorbSQL takes the positions out of the log that a device has told plainly while it measured the same sitting; the furthest of
// them stays.
const absorbSQL = `with absorbed as (
	  delete from reading_session s using reading_session m
	  where m.tenant_id = app.tenant() and m.account_id = app.account() and m.id = any($1) and m.active_ms is not null and m.kind <> 'reset'
	    and s.tenant_id = m.tenant_id and s.account_id = m.account_id and s.book_id = m.book_id and s.pass = m.pass and s.device_id = m.device_id
	    and s.implied and s.kind = 'progress' and s.started_at >= m.started_at and s.ended_at <= m.ended_at
	  returning m.id, s.page, s.percentage)
	update reading_session m set page = greatest(m.page, a.page), percentage = greatest(m.percentage, a.percentage)
	from (select id, max(page) as page, max(percentage) as percentage from absorbed group by id) a
	where m.tenant_id = app.tenant() and m.account_id = app.account() and m.id = a.id`

// record logs sessions, each on its own, and answers with the progress that they make.
func record(ctx context.Context, d *db.DB, sessions []Session) (*Recorded, error) {
	out := &Recorded{Accepted: []uuid.UUID{}, Progress: []Record{}, Rejected: []Rejected{}}
	var ids, books []uuid.UUID // of those that are to be logged
	seen := map[uuid.UUID]bool{}
	var log pgx.Batch
	for _, s := range sessions {
		reason := s.problem()
		if seen[s.ID] {
			reason = "duplicate_in_batch"
		}
		seen[s.ID] = true
		if reason != "" {
			out.Rejected = append(out.Rejected, Rejected{s.ID, reason})
			continue
		}
		ids, books = append(ids, s.ID), append(books, s.BookID)
		log.Queue(recordSQL, s.ID, s.BookID, s.Kind, s.DeviceID, s.DeviceName, within(s.ClientStartedAt), within(s.ClientEndedAt), s.ToPage, s.ToPercentage,
			s.ActiveDurationMS, s.PagesRead, s.Locator)
	}
	if len(ids) == 0 {
		return out, nil
	}
	var b pgx.Batch
	var logged []uuid.UUID
	queueLog(&b, ofBooks, books)
	b.QueuedQueries = append(b.QueuedQueries, log.QueuedQueries...)
	b.Queue(absorbSQL, ids)
	db.Values(&b, &logged, "select id from reading_session where tenant_id = app.tenant() and account_id = app.account() and id = any($1)", ids)
	db.All(&b, &out.Progress, fold(ofBooks)+records(), books)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	var touched []uuid.UUID
	for i, id := range ids {
		if !slices.Contains(logged, id) {
			out.Rejected = append(out.Rejected, Rejected{id, "book_not_found"})
			continue
		}
		out.Accepted, touched = append(out.Accepted, id), append(touched, books[i])
	}
	slices.SortFunc(out.Progress, func(a, b Record) int { return slices.Index(touched, a.BookID) - slices.Index(touched, b.BookID) })
	return out, nil
}

// within is a time that Postgres can tell apart: a client's clock may be anything.
func within(t time.Time) time.Time {
	if least := time.Unix(0, 0); t.Before(least) {
		return least
	}
	return t
}
