package progress

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// device identifies the source of a write without a session: the device that the client names, else its key or its
// kind.
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

// Maximum lengths of stored texts, in characters.
const (
	maxDevice, maxDeviceName = 128, 200
	maxLocator               = 10_000
)

// UnmarshalJSON decodes leniently: an invalid session is rejected alone, not with all others of the request.
func (s *Session) UnmarshalJSON(data []byte) error {
	var in map[string]json.RawMessage
	_ = json.Unmarshal(data, &in) // a value that is no object leaves all fields empty
	*s = Session{}
	s.unnamed = in["id"] == nil || !take(in["id"], &s.ID) || s.ID == uuid.Nil
	_ = take(in["bookId"], &s.BookID) // an invalid id is the id of no book
	switch {
	case !take(in["clientStartedAt"], &s.ClientStartedAt) || !take(in["clientEndedAt"], &s.ClientEndedAt) || s.ClientStartedAt.IsZero() || s.ClientEndedAt.IsZero():
		s.unread = "invalid_time_range"
	case !take(in["toPercentage"], &s.ToPercentage):
		s.unread = "invalid_percentage"
	case !take(whole(in["toPage"]), &s.ToPage) || !take(whole(in["pagesRead"]), &s.PagesRead) || !take(below(in["activeDurationMs"]), &s.ActiveDurationMS),
		!take(in["kind"], &s.Kind) || s.Kind != "progress" && s.Kind != "completed" && s.Kind != "reset":
		s.unread = "invalid_measurement"
	}
	if id := text(in["deviceId"]); id != nil {
		s.DeviceID = cut.Chars(*id, maxDevice)
	}
	if name := text(in["deviceName"]); name != nil {
		s.DeviceName = new(cut.Chars(*name, maxDeviceName))
	}
	if locator := text(in["r2Progression"]); locator != nil && utf8.RuneCountInString(*locator) <= maxLocator && object(*locator) != nil {
		s.Locator = locator
	}
	return nil
}

// take decodes a field that may be missing or null; false if its value has another type.
func take[T any](raw json.RawMessage, into *T) bool {
	return raw == nil || json.Unmarshal(raw, into) == nil
}

// whole removes a fraction of zeros: 4.0 is the integer 4 in JSON Schema, and some languages write it so.
func whole(raw json.RawMessage) json.RawMessage {
	if digits, fraction, ok := bytes.Cut(raw, []byte(".")); ok && len(fraction) > 0 && len(bytes.Trim(fraction, "0")) == 0 {
		return digits
	}
	return raw
}

// below truncates a number to whole milliseconds: browsers' clocks count fractions of them.
func below(raw json.RawMessage) json.RawMessage {
	digits, fraction, _ := bytes.Cut(raw, []byte("."))
	if len(fraction) > 0 && len(bytes.Trim(fraction, "0123456789")) == 0 {
		return digits
	}
	return raw
}

// text decodes a text and removes NUL, which cannot be stored; nil if there is none.
func text(raw json.RawMessage) (out *string) {
	if !take(raw, &out) || out == nil {
		return nil
	}
	*out = cut.Storable(*out)
	return out
}

// problem is why a session is refused whatever its book, or "".
func (s *Session) problem() string {
	switch {
	case s.unread != "":
		return s.unread
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

// recordSQL logs sessions of existing books, including books whose file is gone. A session belongs to the pass that was
// open when it ended: what was read before a book was marked unread, and is sent later, does not bring it back. No
// session ends in the future, so that a client's fast clock does not outdo later sessions. Sessions cut to the same
// time, including two readings, are put a microsecond apart; sessions with equal times of their own are ordered by when
// they were sent.
var recordSQL = `with sent as materialized (
	  select u.*, least(u.started, u.told_at) as started_at, least(u.ended, u.told_at) as ended_at from (
	    select u.id, b.id as book_id, u.kind, u.device_id, u.device_name, u.started, u.ended, u.page, u.percentage, u.active_ms, u.pages_read, u.locator,
	      now() - (count(*) over () - row_number() over (order by u.ended, u.n)) * interval '1 microsecond' as told_at
	    from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::integer[], $9::double precision[],
	      $10::bigint[], $11::integer[], $12::text[]) with ordinality
	      as u(id, book_id, kind, device_id, device_name, started, ended, page, percentage, active_ms, pages_read, locator, n)
	    join book b on b.tenant_id = app.tenant() and b.id = u.book_id
	    where u.id <> all(array(select s.id from reading_session s where s.tenant_id = app.tenant() and s.account_id = app.account() and s.id = any($1)))) u),
	reset as materialized (select s.book_id, s.pass, s.ended_at from reading_session s where ` + mine("s", "any($2)") + ` and s.kind = 'reset')
	insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, device_name, started_at, ended_at, page, percentage,
	  active_ms, pages_read, locator, recorded_at)
	select app.tenant(), app.account(), x.id, x.book_id, coalesce((select max(r.pass) from reset r where r.book_id = x.book_id and r.ended_at <= x.ended_at), 1),
	  x.kind, x.device_id, x.device_name, x.started_at, x.ended_at, case when x.kind <> 'reset' then x.page end, case when x.kind <> 'reset' then x.percentage end,
	  case when x.active_ms is not null then least(x.active_ms, (extract(epoch from x.ended_at - x.started_at) * 1000)::bigint) end, x.pages_read, x.locator, x.told_at
	from sent x
	on conflict (tenant_id, account_id, id) do nothing`

// passesSQL renumbers the passes of books for which a reset was sent. A reset opens a pass; what was read after it
// belongs to that pass, even if it was sent earlier.
var passesSQL = `with counted as (
	  select s.id, s.book_id, s.kind, s.pass, s.ended_at, count(*) filter (where s.kind = 'reset')
	    over (partition by s.book_id order by s.ended_at, s.recorded_at, s.id) as resets
	  from reading_session s where ` + mine("s", "any($1)") + `),
	book as materialized (
	  select o.book_id, greatest(coalesce(max(o.pass - o.resets) filter (where o.kind <> 'reset'), 1), 1) as first,
	    array_agg(o.ended_at) filter (where o.kind = 'reset') as resets
	  from counted o group by o.book_id),
	completed as (
	  update completion c set pass = b.first + (select count(*) from unnest(b.resets) as at where at < c.completed_at) from book b
	  where ` + mine("c", "b.book_id") + ` and c.pass is distinct from b.first + (select count(*) from unnest(b.resets) as at where at < c.completed_at))
	update reading_session s set pass = b.first + o.resets from counted o join book b on b.book_id = o.book_id
	where s.tenant_id = app.tenant() and s.account_id = app.account() and s.id = o.id and s.pass <> b.first + o.resets`

// absorbSQL deletes the plain positions that a device sent during a session that it then sent with measurements. The
// furthest position stays, and the last locator if the session has none. The index has ended_at, so each measured
// session reads only what ended in its time.
var absorbSQL = `with pair as materialized (
	  select m.id as by, s.* from reading_session m cross join lateral (
	    select x.id, x.page, x.percentage, x.locator, x.device_name, x.ended_at from reading_session x where ` + mine("x", "m.book_id") + `
	      and x.pass = m.pass and x.device_id = m.device_id
	      and x.implied and x.kind = 'progress' and x.started_at >= m.started_at and x.ended_at between m.started_at and m.ended_at offset 0) s
	  where m.tenant_id = app.tenant() and m.account_id = app.account() and m.id = any($1) and m.kind <> 'reset'),
	absorbed as (
	  delete from reading_session s where s.tenant_id = app.tenant() and s.account_id = app.account() and s.id = any(array(select p.id from pair p)))
	update reading_session m set page = greatest(m.page, a.page), percentage = greatest(m.percentage, a.percentage),
	  locator = coalesce(m.locator, a.locator), device_name = coalesce(m.device_name, a.device_name)
	from (select p.by, max(p.page) as page, max(p.percentage) as percentage,
	    (array_agg(p.locator order by p.ended_at desc) filter (where p.locator is not null))[1] as locator,
	    (array_agg(p.device_name order by p.ended_at desc) filter (where p.locator is not null))[1] as device_name
	  from pair p group by p.by) a
	where m.tenant_id = app.tenant() and m.account_id = app.account() and m.id = any($1) and m.id = a.by`

// bookNotFound is why a session without an existing book is rejected.
const bookNotFound = "book_not_found"

// record logs sessions one by one and returns the progress computed from them.
func record(ctx context.Context, d *db.DB, sessions []Session) (*Recorded, error) {
	out := &Recorded{Accepted: []uuid.UUID{}, Progress: []Record{}, Rejected: []Rejected{}}
	var ids, books, measured, reset []uuid.UUID // of the sessions to log; the last three are ids of books
	var log struct {
		kinds, devices  []string
		names, locators []*string
		starts, ends    []time.Time
		pages, read     []*int32
		percentages     []*float64
		active          []*int64
	}
	seen, client := map[uuid.UUID]bool{}, device(ctx)
	for i, s := range sessions {
		if s.unnamed {
			return nil, fault.Invalid(fmt.Sprintf("sessions[%d].id", i), "must be a UUID")
		}
		reason := s.problem()
		if seen[s.ID] {
			reason = "duplicate_in_batch"
		}
		seen[s.ID] = true
		if reason != "" {
			out.Rejected = append(out.Rejected, Rejected{s.ID, reason})
			continue
		}
		ids, books, log.kinds, log.devices = append(ids, s.ID), append(books, s.BookID), append(log.kinds, s.Kind), append(log.devices, cmp.Or(s.DeviceID, client))
		log.names, log.locators = append(log.names, s.DeviceName), append(log.locators, s.Locator)
		log.starts, log.ends = append(log.starts, within(s.ClientStartedAt)), append(log.ends, within(s.ClientEndedAt))
		log.pages, log.read, log.percentages = append(log.pages, s.ToPage), append(log.read, s.PagesRead), append(log.percentages, s.ToPercentage)
		log.active = append(log.active, s.ActiveDurationMS)
		if s.Kind == "reset" {
			reset = append(reset, s.BookID)
		}
		if s.ActiveDurationMS != nil {
			measured = append(measured, s.ID)
		}
	}
	if len(ids) == 0 {
		return out, nil
	}
	var b pgx.Batch
	var logged []uuid.UUID
	queueLog(&b, ofBooks, books)
	b.Queue(recordSQL, ids, books, log.kinds, log.devices, log.names, log.starts, log.ends, log.pages, log.percentages, log.active, log.read, log.locators)
	if len(reset) > 0 {
		b.Queue(passesSQL, reset)
	}
	if len(measured) > 0 {
		b.Queue(hashing)
		b.Queue(absorbSQL, measured)
		b.Queue(looping)
	}
	db.Values(&b, &logged, "select id from reading_session where tenant_id = app.tenant() and account_id = app.account() and id = any($1)", ids)
	db.All(&b, &out.Progress, fold(ofBooks)+records, books)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	var touched []uuid.UUID
	for i, id := range ids {
		if !slices.Contains(logged, id) {
			out.Rejected = append(out.Rejected, Rejected{id, bookNotFound})
			continue
		}
		out.Accepted, touched = append(out.Accepted, id), append(touched, books[i])
	}
	slices.SortFunc(out.Progress, func(a, b Record) int { return slices.Index(touched, a.BookID) - slices.Index(touched, b.BookID) })
	return out, nil
}

// within limits a time to what Postgres can store: a client's clock may show anything.
func within(t time.Time) time.Time {
	if least := time.Unix(0, 0); t.Before(least) {
		return least
	}
	return t
}
