package cover

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Upload limits: covers per series or book, and covers and bytes per tenant, for all series and for all books each.
const (
	mostCovers     = 20
	mostOfAll      = 50_000
	mostCoverBytes = 1 << 30
)

// row is an uploaded cover.
type row struct {
	Picture
	OwnerID   uuid.UUID `db:"owner_id"`
	LibraryID uuid.UUID `db:"library_id"`
}

const (
	columns  = "c.id, c.{id} as owner_id, c.source, o.cover_source is not distinct from 'custom:' || c.id as selected, c.size, c.width, c.height, c.created_at, c.updated_at, o.library_id"
	uploaded = " from {o} o join {c} c on c.tenant_id = o.tenant_id and c.{id} = o.id where {is}"
)

// list returns the uploaded covers of an owner, newest first.
func (o covered) list(ctx context.Context, d *db.DB, id uuid.UUID) (all []row, err error) {
	var b pgx.Batch
	var exists bool
	db.Value(&b, &exists, o.sql("select exists (select from {o} o where {is})"), id)
	db.All(&b, &all, o.sql("select "+columns+uploaded+" order by c.updated_at desc, c.id"), id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !exists {
		return nil, fault.Missing(o.What)
	}
	return all, nil
}

// Given says what became of a plugin's cover, after the batch has run.
type Given struct {
	Kept int64 // 1 if there was room
	Same bool  // the picture was there already, and shown if it was to be
}

// QueueGivenSeries adds the insert of a series cover that a plugin provides to the batch. It replaces the plugin's
// previous one. Plugins may use half of the cover limits. show makes it the shown cover; a cover that is shown already
// stays shown.
func QueueGivenSeries(b *pgx.Batch, out *Given, id uuid.UUID, data []byte, source string, show bool) {
	ofSeries.queueGiven(b, out, id, data, source, show)
}

// QueueGivenBook is QueueGivenSeries for a book.
func QueueGivenBook(b *pgx.Batch, out *Given, id uuid.UUID, data []byte, source string, show bool) {
	ofBook.queueGiven(b, out, id, data, source, show)
}

func (o covered) queueGiven(b *pgx.Batch, out *Given, id uuid.UUID, data []byte, source string, show bool) {
	const shown = "o.cover_source is not distinct from 'custom:' || c.id"
	p, print := pictureOf(data), fingerprint(data)
	db.Value(b, &out.Same, o.sql("select exists (select"+uploaded+" and c.fingerprint = $2 and (not $3 or "+shown+"))"), id, print, show)
	o.queueKeep(b, &out.Kept, id, p, print, source, mostCoverBytes/2)
	if show {
		b.Queue(o.sql(selecting+"c.fingerprint = $2 and not "+shown), id, print)
	}
	b.Queue(o.sql(`delete from {c} c using {o} o where c.tenant_id = app.tenant() and c.{id} = $1 and c.source = $2 and c.fingerprint <> $3
		and {is} and o.cover_source is distinct from 'custom:' || c.id
		and exists (select from {c} n where n.tenant_id = c.tenant_id and n.{id} = c.{id} and n.fingerprint = $3)`), id, source, print)
}

// add stores a picture and shows it; a picture that exists already is only shown again.
func (o covered) add(ctx context.Context, d *db.DB, id uuid.UUID, p *pictureFile) (*row, *changed, error) {
	print := fingerprint(p.data)
	var b pgx.Batch
	var exists bool
	var out *row
	var c changed
	o.hold(&b, &exists, id)
	o.queueKeep(&b, new(int64), id, p, print, "custom", mostCoverBytes)
	db.One(&b, &out, o.sql(selecting+"c.fingerprint = $2 returning "+columns), id, print)
	o.queueChanged(&b, &c, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	switch {
	case !exists:
		return nil, nil, fault.Missing(o.What)
	case out == nil:
		return nil, nil, fault.New(fault.Conflict, "The limit of uploaded covers is reached (%d for one %s; %d or 1 GiB for all %s): delete one first", mostCovers,
			o.Table, mostOfAll, o.Path)
	}
	c.library = out.LibraryID
	return out, &c, nil
}

// replaced is an SQL condition: cover c is replaced by the new one of owner $1 and source $10, which is not an upload.
const replaced = "(c.{id} = $1 and c.source = $10 and $10 <> 'custom')"

// queueKeep adds the insert of a picture, of a locked owner, to the batch; an existing one stays. What people upload
// counts as theirs even if a plugin has provided the same picture before.
func (o covered) queueKeep(b *pgx.Batch, kept *int64, id uuid.UUID, p *pictureFile, print, source string, bytes int64) {
	db.Affected(b, kept, o.sql(`insert into {c} as k (tenant_id, id, {id}, fingerprint, type, image, size, width, height, source)
		select app.tenant(), gen_random_uuid(), o.id, $2, $3, $4, $5::bigint, $6, $7, $10 from {o} o where {is}
		  and (exists (select from {c} c where c.tenant_id = app.tenant() and c.{id} = o.id and c.fingerprint = $2)
		    or (select count(*) from {c} c where c.tenant_id = app.tenant() and c.{id} = o.id and not `+replaced+`) < $8
		      and (select a.covers - r.covers < $11 and a.bytes - r.bytes + $5::bigint <= $9 from app.hold_covers('{o}') a, (
		        select count(*) as covers, coalesce(sum(c.size), 0) as bytes from {c} c where c.tenant_id = app.tenant() and `+replaced+`) r))
		on conflict (tenant_id, {id}, fingerprint) do update set updated_at = now(), source = case excluded.source when 'custom' then 'custom' else k.source end`),
		id, print, p.kind, p.data, len(p.data), p.width, p.height, mostCovers, bytes, source, mostOfAll)
}

// selecting makes owner $1 show its uploaded cover c; a condition on c follows.
const selecting = `update {o} o set cover_source = 'custom:' || c.id, updated_at = now() from {c} c
	where {is} and c.tenant_id = o.tenant_id and c.{id} = o.id and `

func (o covered) choose(ctx context.Context, d *db.DB, owner, id uuid.UUID) (*row, *changed, error) {
	var b pgx.Batch
	var exists bool
	var out *row
	var c changed
	o.hold(&b, &exists, owner)
	db.One(&b, &out, o.sql(selecting+"c.id = $2 returning "+columns), owner, id)
	o.queueChanged(&b, &c, owner)
	if err := d.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	if out == nil {
		return nil, nil, fault.Missing("Cover")
	}
	c.library = out.LibraryID
	return out, &c, nil
}

// reset returns to the default cover.
func (o covered) reset(ctx context.Context, d *db.DB, id uuid.UUID) (*changed, error) {
	return o.change(ctx, d, o.What, id, func(b *pgx.Batch, at **uuid.UUID) {
		db.Value(b, at, o.sql("update {o} o set cover_source = null, updated_at = now() where {is} returning o.library_id"), id)
	})
}

// remove deletes an uploaded cover. If the owner shows it, it shows the newest of the others instead.
func (o covered) remove(ctx context.Context, d *db.DB, owner, id uuid.UUID) (*changed, error) {
	return o.change(ctx, d, "Cover", owner, func(b *pgx.Batch, at **uuid.UUID) {
		db.Value(b, at, o.sql(`update {o} o set updated_at = now(), cover_source = case when o.cover_source = 'custom:' || $2::uuid then (
			  select 'custom:' || c.id from {c} c where c.tenant_id = o.tenant_id and c.{id} = o.id and c.id <> $2 order by c.updated_at desc, c.id limit 1)
			  else o.cover_source end
			where {is} and exists (select from {c} c where c.tenant_id = o.tenant_id and c.{id} = o.id and c.id = $2)
			returning o.library_id`), owner, id)
		b.Queue(o.sql("delete from {c} c using {o} o where {is} and c.tenant_id = o.tenant_id and c.{id} = o.id and c.id = $2"), owner, id)
	})
}

// change runs a change of a locked owner. queue sets at to the owner's library; if it stays nil, the error is a 404 for
// what.
func (o covered) change(ctx context.Context, d *db.DB, what string, id uuid.UUID, queue func(b *pgx.Batch, at **uuid.UUID)) (*changed, error) {
	var b pgx.Batch
	var exists bool
	var at *uuid.UUID
	var c changed
	o.hold(&b, &exists, id)
	queue(&b, &at)
	o.queueChanged(&b, &c, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if at == nil {
		return nil, fault.Missing(what)
	}
	c.library = *at
	return &c, nil
}
