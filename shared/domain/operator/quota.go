package operator

import (
	"context"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// SetQuotas changes the limits that it contains.
type SetQuotas struct {
	Name           string `json:"name"`
	Books          *int64 `json:"books" arg:"books" help:"maximum number of books; -1: no limit"`
	RenditionBytes *int64 `json:"renditionBytes" arg:"rendition-bytes" help:"maximum number of bytes in the media bucket; -1: no limit"`
	Scans          *int64 `json:"scans" arg:"scans" help:"maximum number of scans at once; -1: no limit"`
	Requests       *int64 `json:"requests" arg:"requests" help:"maximum number of requests a second of all users; -1: no limit"`
}

// check checks limits of an input: nil is unchanged, noLimit removes the limit.
func (q Quotas) check() error {
	var bad []fault.Field
	for _, c := range []struct {
		name        string
		value       *int64
		least, most int64
	}{
		{"books", q.Books, 0, 1 << 40}, {"renditionBytes", q.RenditionBytes, 0, 1 << 60},
		{"scans", q.Scans, 0, 1000}, {"requests", q.Requests, 1, 1_000_000},
	} {
		if c.value != nil && *c.value != noLimit && (*c.value < c.least || *c.value > c.most) {
			bad = append(bad, fault.Invalid(c.name, "must be %d to %d, or -1 for no limit, is %d", c.least, c.most, *c.value).Fields...)
		}
	}
	return fault.InvalidFields(bad)
}

func (o *Operator) setQuotas(ctx context.Context, i SetQuotas) (any, error) {
	q := Quotas{i.Books, i.RenditionBytes, i.Scans, i.Requests}
	if err := q.check(); err != nil {
		return nil, err
	}
	if q == (Quotas{}) {
		return nil, fault.Invalid("books", "at least one of books, renditionBytes, scans and requests is required")
	}
	t, err := o.alive(ctx, i.Name)
	if err != nil {
		return nil, err
	}
	_, err = db.Exec(in(ctx, t), o.System, `update tenant set
		max_books = case when $1::bigint is null then max_books else nullif($1, -1) end,
		max_rendition_bytes = case when $2::bigint is null then max_rendition_bytes else nullif($2, -1) end,
		max_scans = case when $3::bigint is null then max_scans else nullif($3, -1) end,
		max_requests = case when $4::bigint is null then max_requests else nullif($4, -1) end
		where id = app.tenant()`, q.Books, q.RenditionBytes, q.Scans, q.Requests)
	if err != nil {
		return nil, err
	}
	return o.changed(ctx, t)
}
