package statistic

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// What a row sums up: everything, or one period, series, format or device.
const (
	ofAll    = 15 // one bit per column that is not grouped by
	ofPeriod = 7
	ofSeries = 11
	ofFormat = 13
	ofDevice = 14
)

// key identifies a row; columns that it is not grouped by are nil.
type key struct {
	What     int        `db:"what"`
	Bucket   *time.Time `db:"bucket"`
	SeriesID *uuid.UUID `db:"series_id"`
	Title    *string    `db:"title"` // of the series
	Format   *string    `db:"format"`
	Device   *string    `db:"device_id"`
}

// of returns a map key.
func (k key) of() string {
	switch k.What {
	case ofPeriod:
		return "p" + k.Bucket.Format(time.DateOnly)
	case ofSeries:
		return "s" + k.SeriesID.String()
	case ofFormat:
		return "f" + *k.Format
	case ofDevice:
		return "d" + *k.Device
	}
	return ""
}

type sum struct {
	key
	Sessions        int64     `db:"sessions"`
	Measured        int64     `db:"measured"`
	Inferred        int64     `db:"inferred"`
	Pages           int64     `db:"pages"`
	Books           int64     `db:"books"`
	WithoutDuration int64     `db:"without_duration"`
	WithoutPages    int64     `db:"without_pages"`
	DeviceName      *string   `db:"device_name"`
	LastReadAt      time.Time `db:"last_read_at"`
	Finished        int64     `db:"-"`
}

type finished struct {
	key
	Books      int64     `db:"books"`
	LastReadAt time.Time `db:"last_read_at"`
}

// inferred is an SQL condition: the length of session s follows from its plain writes. Sessions of the device legacy
// may stem from progress in an old format, which contains when a reader began, not how long they read.
const inferred = "(s.active_ms is null and s.implied and s.device_id <> 'legacy')"

// happened is the condition for the caller's sessions s with activity. A reset is none; a session from plain writes
// counts only if time has passed.
const happened = `s.tenant_id = app.tenant() and s.account_id = app.account() and s.kind <> 'reset'
	and (s.pages_read > 0 or s.active_ms > 0 or case when s.implied then ` + inferred + ` and s.ended_at > s.started_at else s.active_ms is null end)`

const groups = ` grouping(bucket, series_id, format, device_id) as what, bucket, series_id, title, format, device_id`

const by = ` group by grouping sets ((), (bucket), (series_id, title), (format), (device_id))`

// bucket is SQL for the period of a time; $3 is the granularity.
func bucket(at string) string { return "date_trunc($3, " + at + " at time zone 'UTC')::date as bucket" }

var (
	sums = `with s as materialized (
	  select s.book_id, b.series_id, z.title, b.format, s.device_id, s.device_name, s.ended_at, ` + bucket("s.ended_at") + `, s.active_ms as measured,
	    case when ` + inferred + ` then (extract(epoch from s.ended_at - s.started_at) * 1000)::bigint end as inferred, s.pages_read
	  from reading_session s join book b on b.tenant_id = s.tenant_id and b.id = s.book_id
	  join series z on z.tenant_id = b.tenant_id and z.id = b.series_id
	  where ` + happened + ` and s.ended_at >= $1 and s.ended_at < $2)
	select` + groups + `, count(*) as sessions, coalesce(sum(measured), 0)::bigint as measured, coalesce(sum(inferred), 0)::bigint as inferred,
	  coalesce(sum(pages_read), 0)::bigint as pages, count(distinct book_id) as books, count(*) filter (where measured is null and inferred is null) as without_duration,
	  count(*) filter (where pages_read is null) as without_pages, (array_agg(device_name order by ended_at desc) filter (where device_name is not null))[1] as device_name,
	  coalesce(max(ended_at), $1) as last_read_at
	from s` + by

	// A completion belongs to the device of the first session that reports it; it has none if that session no longer
	// exists.
	ends = `with c as materialized (
	  select b.series_id, z.title, b.format, c.completed_at, ` + bucket("c.completed_at") + `, coalesce((select s.device_id from reading_session s
	      where s.tenant_id = app.tenant() and s.account_id = app.account() and s.book_id = c.book_id and s.pass = c.pass and s.kind = 'completed'
	      order by s.ended_at, s.id limit 1), '') as device_id
	  from completion c join book b on b.tenant_id = c.tenant_id and b.id = c.book_id
	  join series z on z.tenant_id = b.tenant_id and z.id = b.series_id
	  where c.tenant_id = app.tenant() and c.account_id = app.account() and not c.forgotten and c.completed_at >= $1 and c.completed_at < $2)
	select` + groups + `, count(*) as books, coalesce(max(completed_at), $1) as last_read_at from c` + by
)

// statistics returns the caller's statistics for a period; limit applies to the series, ordered by time, pages or
// completions.
func statistics(ctx context.Context, d *db.DB, from, to time.Time, granularity, order string, limit int) (*Statistics, error) {
	var b pgx.Batch
	var read []sum
	var done []finished
	db.All(&b, &read, sums, from, to, granularity)
	db.All(&b, &done, ends, from, to, granularity)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	out := &Statistics{From: from, To: to, Granularity: granularity, Periods: []Period{}, Series: []Series{}, Formats: []Format{}, Devices: []Device{}}
	for _, s := range merge(read, done) {
		out.take(s)
	}
	slices.SortFunc(out.Periods, func(a, b Period) int { return cmp.Compare(a.Bucket, b.Bucket) })
	slices.SortFunc(out.Formats, func(a, b Format) int {
		return cmp.Or(cmp.Compare(b.Duration.TotalMS, a.Duration.TotalMS), cmp.Compare(a.Format, b.Format))
	})
	slices.SortFunc(out.Devices, func(a, b Device) int {
		return cmp.Or(b.LastReadAt.Compare(a.LastReadAt), cmp.Compare(a.DeviceID, b.DeviceID))
	})
	slices.SortFunc(out.Series, func(a, b Series) int {
		return cmp.Or(cmp.Compare(b.rank(order), a.rank(order)), cmp.Compare(a.SeriesID.String(), b.SeriesID.String()))
	})
	out.Series = out.Series[:min(limit, len(out.Series))]
	return out, nil
}

// merge adds the completions to the sums; those without a known device are left out.
func merge(read []sum, done []finished) []sum {
	at := map[string]int{}
	for i, s := range read {
		at[s.of()] = i
	}
	for _, f := range done {
		if f.What == ofDevice && *f.Device == "" {
			continue
		}
		i, ok := at[f.of()]
		if !ok {
			i, read = len(read), append(read, sum{key: f.key})
		}
		read[i].Finished = f.Books
		if f.LastReadAt.After(read[i].LastReadAt) {
			read[i].LastReadAt = f.LastReadAt
		}
	}
	return read
}

func (o *Statistics) take(s sum) {
	read := Read{s.Sessions, Duration{s.Measured + s.Inferred, s.Measured, s.Inferred}, s.Pages, s.Finished}
	switch s.What {
	case ofAll:
		o.Summary = Summary{read, s.Books, s.WithoutDuration, s.WithoutPages}
	case ofPeriod:
		o.Periods = append(o.Periods, Period{s.Bucket.Format(time.DateOnly), read})
	case ofSeries:
		o.Series = append(o.Series, Series{*s.SeriesID, *s.Title, s.Books, read})
	case ofFormat:
		o.Formats = append(o.Formats, Format{*s.Format, read})
	case ofDevice:
		o.Devices = append(o.Devices, Device{*s.Device, s.DeviceName, s.LastReadAt, read})
	}
}

func (s Series) rank(order string) int64 {
	switch order {
	case "pages":
		return s.PagesRead
	case "completions":
		return s.BooksFinished
	}
	return s.Duration.TotalMS
}

func coverage(ctx context.Context, d *db.DB) (*Coverage, error) {
	return db.Get[Coverage](ctx, d, "select min(s.started_at) as first_read_at, max(s.ended_at) as last_read_at from reading_session s where "+happened)
}
