package progress

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Progression is the position in an e-book as clients built on Readium's toolkit store it: a place in a resource, which
// a page number cannot express.
type Progression struct {
	Device   Device          `json:"device"`
	Locator  json.RawMessage `json:"locator" doc:"Readium locator: a JSON object, stored unchanged"`
	Modified time.Time       `json:"modified"`
}

// Device is a reading device.
type Device struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// NewProgression is the position that a client sends.
type NewProgression struct {
	Device *struct {
		ID   string `json:"id,omitempty" maxLength:"128"`
		Name string `json:"name,omitempty" maxLength:"200"`
	} `json:"device,omitempty"`
	Locator  json.RawMessage `json:"locator" doc:"Readium locator of at most 10,000 characters, with a locations.totalProgression from 0 to 1. In a book of page images locations.position is the page"`
	Modified *time.Time      `json:"modified,omitempty" doc:"Time at which the reader was at this position; defaults to now, and future times count as now. A time more than five minutes ago that is earlier than the last known position is refused with 409"`
}

// placed returns how far into the book a locator is, from 0 to 1, and its position in the book's list of positions; nil
// if it has none. Positions start at 1.
func placed(locator json.RawMessage) (total float64, position *int32, err error) {
	var l struct {
		Href      string
		Locations struct {
			TotalProgression *float64
			Position         json.RawMessage
		}
	}
	const name = "locator"
	switch err := json.Unmarshal(locator, &l); {
	case err != nil:
		return 0, nil, fault.Invalid(name, "must be a Readium locator: an object with href and locations")
	case utf8.RuneCount(locator) > maxLocator:
		return 0, nil, fault.Invalid(name, "is longer than 10,000 characters")
	case l.Href == "":
		return 0, nil, fault.Invalid(name+".href", "is missing")
	case l.Locations.TotalProgression == nil || !(*l.Locations.TotalProgression >= 0 && *l.Locations.TotalProgression <= 1):
		return 0, nil, fault.Invalid(name+".locations.totalProgression", "must be a number from 0 to 1")
	}
	if n := int32(0); json.Unmarshal(l.Locations.Position, &n) == nil && n > 0 {
		position = &n
	}
	return *l.Locations.TotalProgression, position, nil
}

// GoTo stores the position, and the page and percentage that it corresponds to. Conflict if a later one is stored.
func GoTo(ctx context.Context, d *db.DB, id uuid.UUID, p NewProgression) error {
	at, position, err := placed(p.Locator)
	if err != nil {
		return err
	}
	t := Told{Percentage: at, Page: position, Locator: new(string(p.Locator)), Device: device(ctx), At: p.Modified}
	if p.Device != nil {
		if told := cut.Storable(p.Device.ID); told != "" {
			t.Device = told
		}
		if told := cut.Storable(p.Device.Name); told != "" {
			t.DeviceName = &told
		}
	}
	return Tell(ctx, d, id, t)
}

// Told is a position in a book that a client reports.
type Told struct {
	Percentage float64 // of the whole book, from 0 to 1
	Page       *int32  // from 1; if nil, and in an e-book, derived from the percentage
	Locator    *string // a Readium locator, or nil
	Device     string
	DeviceName *string
	At         *time.Time // when the reader was there; nil: now
}

// lastTold is SQL for the time of the latest session of book $1.
var lastTold = "(select max(s.ended_at) from reading_session s where " + mine("s", "$1") + ")"

// later is SQL for whether book $1 has a session that is later than the time in parameter than, which the device in
// parameter device reports. A device that was offline sends an old position, and a book that was marked unread since
// then must not come back. Clocks may differ by five minutes, so if that time is at most five minutes old, only these
// sessions count: one that is not plain progress, and a later one of the same device by its own clock (a session that
// ended when it was recorded has our clock's time). Times compare by the millisecond, as clients return our times in
// that precision.
func later(than, device string) string {
	return "exists (select from reading_session s where " + mine("s", "$1") + " and date_trunc('milliseconds', s.ended_at) > " + than + `::timestamptz
	  and (` + than + `::timestamptz < now() - interval '5 minutes' or s.kind <> 'progress' or s.device_id = ` + device + `::text and s.ended_at < s.recorded_at))`
}

// repeated is SQL for whether a device sends again what it has told, because the response was lost: the last pass of
// book $1 has a session of the device with this share and the time at, by the device's own clock, and a later session.
func repeated(share, at, device string) string {
	return "exists (select from reading_session s where " + mine("s", "$1") + " and s.pass = (select max(x.pass) from reading_session x where " + mine("x", "$1") + `)
	  and s.device_id = ` + device + "::text and s.percentage = " + share + `::double precision and s.ended_at < s.recorded_at
	  and date_trunc('milliseconds', s.ended_at) = date_trunc('milliseconds', ` + at + `::timestamptz) and s.ended_at < ` + lastTold + ")"
}

// Tell stores a position in a book or its heir. NotFound if there is no such book, Conflict if a later session is
// stored. Future times count as now; so does a time that is accepted although a later session exists. A position whose
// own time was stored changes nothing when it is sent again.
func Tell(ctx context.Context, d *db.DB, id uuid.UUID, t Told) error {
	if t.At != nil {
		t.At = new(within(*t.At))
	}
	return orHeir(ctx, d, id, func(id uuid.UUID) error { return tell(ctx, d, id, t) })
}

func tell(ctx context.Context, d *db.DB, id uuid.UUID, t Told) error {
	from := cut.Storable(t.Device)
	var b pgx.Batch
	var out *Record
	var stale bool
	queueLog(&b, ofBook, id)
	db.Value(&b, &stale, "select exists (select from book b where b.tenant_id = app.tenant() and "+ofBook+" and "+later("$2", "$3")+")", id, t.At, from)
	b.Queue(note(ofBook, `select b.id as book_id, case when b.told is null then greatest(1, `+pageAt("$2::double precision")+`) when b.page_count > 0 then least(b.told, b.page_count) else b.told end as page,
		  $2::double precision as percentage, case when $2 >= $3 or b.page_count > 0 and b.told >= b.page_count then 'completed' else 'progress' end as kind,
		  $5::text as locator, $6::text as device_name, case when $8::timestamptz < date_trunc('milliseconds', `+lastTold+`) then statement_timestamp()
		    else least(greatest(coalesce($8, statement_timestamp()), `+lastTold+`), statement_timestamp()) end as at
		from (select b.id, b.page_count, case when lower(b.format) <> 'epub' then $7::integer end as told from book b
		  where b.tenant_id = app.tenant() and `+ofBook+" and not "+later("$8", "$4")+" and not "+repeated("$2", "$8", "$4")+") b", "$4"), id, t.Percentage, completeAt, from, t.Locator, t.DeviceName, t.Page, t.At)
	db.One(&b, &out, fold(ofBook)+records, id)
	if err := d.Run(ctx, &b); err != nil {
		return err
	}
	if stale {
		return fault.New(fault.Conflict, "A later position in this book, or its end, is already stored; get it, or send a later modified")
	}
	if out == nil {
		return fault.Missing("Book")
	}
	return nil
}

// Last is how far the caller is in a book, and the place that the last sitting told, if it told one.
type Last struct {
	Page       int32   `db:"page"`
	Percentage float64 `db:"percentage"`
	Locator    *string `db:"locator"`
}

// QueueLast adds the query for a Last to a batch; book is SQL for the book's id. dst is nil if the book was not read.
func QueueLast(b *pgx.Batch, dst **Last, book string, args ...any) {
	db.One(b, dst, "select p.current_page as page, coalesce("+PercentageSQL+`, p.percentage, least(1, p.current_page::double precision / nullif(b.page_count, 0)), 0) as percentage, (select s.locator from reading_session s
		  where `+mine("s", "p.book_id")+` and s.kind <> 'reset' and s.pass = (select max(x.pass) from reading_session x where `+mine("x", "p.book_id")+`)
		  order by s.ended_at desc, s.recorded_at desc, s.id desc limit 1) as locator
		from progress p join book b on b.tenant_id = p.tenant_id and b.id = p.book_id
		where p.tenant_id = app.tenant() and p.account_id = app.account() and p.book_id = `+book, args...)
}

// Place returns the caller's last position in the current pass of a book, or nil.
func Place(ctx context.Context, d *db.DB, id uuid.UUID) (*Progression, error) {
	var b pgx.Batch
	var exists bool
	var last *struct {
		Locator string    `db:"locator"`
		Device  string    `db:"device_id"`
		Name    *string   `db:"device_name"`
		At      time.Time `db:"ended_at"`
	}
	queueExists(&b, &exists, id)
	db.One(&b, &last, `select s.locator, s.device_id, s.device_name, s.ended_at from reading_session s
		where `+mine("s", "$1")+` and s.kind <> 'reset' and s.locator is not null
		  and s.pass = (select max(x.pass) from reading_session x where `+mine("x", "$1")+`)
		order by s.ended_at desc, s.recorded_at desc, s.id desc limit 1`, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !exists {
		return nil, fault.Missing("Book")
	}
	if last == nil {
		return nil, nil
	}
	locator := object(last.Locator)
	if locator == nil || !named(locator) {
		return nil, nil
	}
	out := &Progression{Device: Device{ID: last.Device, Name: last.Device}, Locator: locator, Modified: last.At}
	if last.Name != nil {
		out.Device.Name = *last.Name
	}
	return out, nil
}

// named reports whether a locator names a resource. One from KOReader may not: then only KOReader can use it.
func named(locator json.RawMessage) bool {
	var l struct{ Href, KOReader string }
	return json.Unmarshal(locator, &l) != nil || l.Href != "" || l.KOReader == ""
}

// object parses the locator that a session sent as text; nil if it is none. Some clients send the whole progression.
func object(text string) json.RawMessage {
	raw := json.RawMessage(strings.TrimSpace(text))
	var whole struct{ Locator json.RawMessage }
	if !bytes.HasPrefix(raw, []byte("{")) || json.Unmarshal(raw, &whole) != nil {
		return nil
	}
	if bytes.HasPrefix(whole.Locator, []byte("{")) {
		return whole.Locator
	}
	return raw
}
