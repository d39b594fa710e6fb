package series

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// BulkBody changes the metadata of several series: null clears a field, an absent field stays.
type BulkBody struct {
	SeriesIDs []uuid.UUID `json:"seriesIds" nullable:"false" maxItems:"100" doc:"Unknown ids are ignored"`
	SharedBody
}

// BulkLocks sets or clears locks of several series.
type BulkLocks struct {
	SeriesIDs []uuid.UUID
	Locks     LockChanges
}

// Schema lists the ids and every lock.
func (BulkLocks) Schema(r huma.Registry) *huma.Schema {
	return book.BulkLockSchema("seriesIds", lockNames)
}

// UnmarshalJSON ignores members that are neither ids nor locks.
func (b *BulkLocks) UnmarshalJSON(data []byte) error {
	var ids struct{ SeriesIDs []uuid.UUID }
	if err := json.Unmarshal(data, &ids); err != nil {
		return err
	}
	b.SeriesIDs = ids.SeriesIDs
	return b.Locks.UnmarshalJSON(data)
}

// bulk registers the operations that change several series at once.
func bulk(a *httpapi.API, d *db.DB, publish events.Publish) {
	changed := func(ctx context.Context, at []events.Series, fields []string) *book.BulkChanged {
		told := make([]events.Event, len(at))
		for i, s := range at {
			told[i] = events.SeriesUpdated(s, fields...)
		}
		publish(ctx, httpapi.TenantOf(ctx).ID, told...)
		return &book.BulkChanged{UpdatedCount: len(at), Message: fmt.Sprintf("%d series were changed", len(at))}
	}
	httpapi.Register(a, operation("PATCH", "/bulk/metadata", "patchAllSeriesMetadata", "Update metadata fields of several series", auth.SeriesWrite),
		func(ctx context.Context, in *struct{ Body BulkBody }) (*book.BulkChanged, error) {
			at, fields, err := amendAll(ctx, d, in.Body.SeriesIDs, &MetadataBody{SharedBody: in.Body.SharedBody})
			if err != nil {
				return nil, err
			}
			return changed(ctx, at, fields), nil
		})
	httpapi.Register(a, operation("PUT", "/bulk/metadata/locks", "putAllSeriesLocks", "Lock or unlock metadata fields of several series", auth.SeriesWrite),
		func(ctx context.Context, in *struct{ Body BulkLocks }) (*book.BulkChanged, error) {
			on, off := book.SplitLocks(lockNames, in.Body.Locks)
			if len(on)+len(off) == 0 {
				return changed(ctx, nil, nil), nil
			}
			at, err := writeAll(ctx, d, `
				update series s set locks = array(select x from unnest(s.locks) x where not x = any($3::text[]) union select unnest($2::text[])), updated_at = now()
				where s.tenant_id = app.tenant() and s.id = any($1) returning s.id, s.library_id`, in.Body.SeriesIDs, on, off)
			if err != nil {
				return nil, err
			}
			return changed(ctx, at, []string{"locks"}), nil
		})
}

// writeAll changes several series by a statement whose first parameter is their ids.
func writeAll(ctx context.Context, d *db.DB, sql string, ids []uuid.UUID, args ...any) (at []events.Series, err error) {
	var b pgx.Batch
	book.LockSeries(&b, ids)
	db.All(&b, &at, sql, append([]any{ids}, args...)...)
	return at, d.Run(ctx, &b)
}

// amendAll changes the metadata of several series.
func amendAll(ctx context.Context, d *db.DB, ids []uuid.UUID, body *MetadataBody) ([]events.Series, []string, error) {
	if err := body.check(); err != nil {
		return nil, nil, err
	}
	args, set, names := []any{nil}, []string{}, []string{}
	for _, c := range body.columns() {
		if c.sent {
			args, names = append(args, c.value), append(names, c.field)
			set = append(set, fmt.Sprintf("%s = $%d::%s", c.name, len(args)+1, c.kind))
		}
	}
	if len(set) == 0 {
		return nil, nil, nil
	}
	args[0] = names
	at, err := writeAll(ctx, d, "update series s set "+strings.Join(set, ", ")+`,
		  described = array(select unnest(s.described) except select unnest($2::text[])), updated_at = now()
		where s.tenant_id = app.tenant() and s.id = any($1) returning s.id, s.library_id`, ids, args...)
	return at, names, err
}
