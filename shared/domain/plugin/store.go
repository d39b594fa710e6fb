package plugin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/release"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// most is the maximum number of plugins per tenant.
const most = 100

// sourcePrefix is the prefix of a plugin as a source of ids, pictures or progress: plugin:<name>.
const sourcePrefix = "plugin:"

func list(ctx context.Context, d *db.DB, limit, offset int) ([]Plugin, int64, error) {
	var b pgx.Batch
	var page []Plugin
	var total int64
	db.All(&b, &page, "select "+shownCols+" from plugin p where p.tenant_id = app.tenant() order by p.name limit $1 offset $2", limit, offset)
	db.Value(&b, &total, "select count(*) from plugin where tenant_id = app.tenant()")
	err := d.Run(ctx, &b)
	for i := range page {
		page[i].shown()
	}
	return page, total, err
}

func get(ctx context.Context, d *db.DB, id uuid.UUID) (*Plugin, error) {
	return found(db.Get[Plugin](ctx, d, selectShown, id))
}

func found(p *Plugin, err error) (*Plugin, error) {
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, fault.Missing("Plugin")
	}
	return p.shown(), nil
}

// stored returns the columns that people write, except the credentials, with their values.
func (p *Plugin) stored() (names []string, values []any) {
	for _, c := range []struct {
		name  string
		value any
	}{{"display_name", p.DisplayName}, {"description", p.Description}, {"command", p.Command}, {"args", p.Args}, {"working_directory", p.WorkingDirectory},
		{"env", p.Env}, {"config", p.Config}, {"credential_delivery", p.CredentialDelivery}, {"library_ids", p.LibraryIDs}, {"scopes", p.Scopes},
		{"permissions", p.Permissions}, {"metadata_targets", p.MetadataTargets}, {"use_existing_external_id", p.UseExistingExternalID},
		{"auto_match_conditions", p.AutoMatchConditions}, {"search_query_template", p.SearchQueryTemplate},
		{"search_preprocessing_rules", p.SearchPreprocessingRules}, {"search_results_limit", p.SearchResultsLimit}, {"rate_limit", p.RateLimitRequestsPerMin},
		{"request_timeout", p.RequestTimeoutSeconds}, {"log_level", p.LogLevel}, {"sync_cron_schedule", p.SyncCronSchedule}} {
		names, values = append(names, c.name), append(values, c.value)
	}
	return names, values
}

// add stores a new plugin with its encrypted credentials; Conflict if the name is taken or the limit is reached.
// Concurrent calls are serialized, so that together they cannot exceed the limit.
func add(ctx context.Context, d *db.DB, p *Plugin, credentials []byte) (*Plugin, error) {
	names, values := p.stored()
	places := make([]string, len(names))
	for i := range places {
		places[i] = fmt.Sprintf("$%d", i+6)
	}
	var b pgx.Batch
	var out *Plugin
	b.Queue("select pg_advisory_xact_lock(hashtextextended('longbox plugins ' || app.tenant(), 0))")
	db.One(&b, &out, "insert into plugin as p (tenant_id, id, name, plugin_type, enabled, credentials, "+strings.Join(names, ", ")+`)
		select app.tenant(), $1::uuid, $2, $3, $4, $5, `+strings.Join(places, ", ")+` where (select count(*) from plugin where tenant_id = app.tenant()) < `+fmt.Sprint(most)+`
		returning `+shownCols, append([]any{p.ID, p.Name, p.PluginType, p.Enabled, credentials}, values...)...)
	b.Queue(keepSchedule, p.ID)
	err := d.Run(ctx, &b)
	switch {
	case db.Conflict(err, "plugin_name"):
		return nil, fault.Taken("name", "There is already a plugin called %q", p.Name)
	case err == nil && out == nil:
		return nil, fault.New(fault.Conflict, "There are already %d plugins, the most there can be; delete one first", most)
	}
	return found(out, err)
}

// update changes a plugin.
func (s *service) update(ctx context.Context, id uuid.UUID, f *Fields) (out *Plugin, err error) {
	err = s.Database.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		p, err := one(ctx, tx, selectShown+" for no key update", id)
		if err != nil {
			return err
		}
		if err := f.apply(p, s.Client.Commands); err != nil {
			return err
		}
		credentials, changed, err := s.sealed(httpapi.TenantOf(ctx).ID, id, f)
		if err != nil {
			return err
		}
		names, values := p.stored()
		set := make([]string, len(names))
		for i, n := range names {
			set[i] = fmt.Sprintf("%s = $%d", n, i+4)
		}
		if out, err = one(ctx, tx, "update plugin p set credentials = case when $2 then $3 else p.credentials end, updated_at = now(), "+strings.Join(set, ", ")+
			" where p.tenant_id = app.tenant() and p.id = $1 returning "+shownCols, append([]any{id, changed, credentials}, values...)...); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, keepSchedule, id)
		return err
	})
	return out, err
}

func one(ctx context.Context, tx pgx.Tx, sql string, args ...any) (*Plugin, error) {
	var b pgx.Batch
	var p *Plugin
	db.One(&b, &p, sql, args...)
	err := tx.SendBatch(ctx, &b).Close()
	return found(p, err)
}

// SQL for changes of a plugin's state.
const (
	enabling  = "enabled = true, health_status = 'unknown', disabled_reason = null, counted_from = now()"
	disabling = "enabled = false, health_status = 'disabled', disabled_reason = null"
	resetting = "failure_count = 0, disabled_reason = null, health_status = case when p.enabled then 'unknown' else 'disabled' end, counted_from = now()"
)

func change(ctx context.Context, d *db.DB, id uuid.UUID, set string) (*Plugin, error) {
	return found(db.Get[Plugin](ctx, d, "update plugin p set "+set+", updated_at = now() where p.tenant_id = app.tenant() and p.id = $1 returning "+shownCols, id))
}

// remove deletes a plugin. Its announced releases may be too many for one transaction, so its sources are only marked
// as removed; release.Sweep deletes them.
func remove(ctx context.Context, d *db.DB, id uuid.UUID) error {
	var b pgx.Batch
	var n int64
	b.Queue("select from plugin where tenant_id = app.tenant() and id = $1 for update", id)
	release.QueueRemoval(&b, id)
	db.Affected(&b, &n, "delete from plugin where tenant_id = app.tenant() and id = $1", id)
	err := d.Run(ctx, &b)
	if err == nil && n == 0 {
		err = fault.Missing("Plugin")
	}
	return err
}

// A plugin is disabled by that many failures within the window; the latest failures are kept for a while.
const (
	threshold     = 3
	window        = time.Hour
	keptFor       = 30 * 24 * time.Hour
	mostFailures  = 500
	failuresShown = "f.id, f.message, f.code, f.method, f.request_summary, f.occurred_at"
)

// Failure is a failed request.
type Failure struct {
	ID             uuid.UUID `json:"id" db:"id"`
	ErrorMessage   string    `json:"errorMessage" db:"message"`
	ErrorCode      string    `json:"errorCode" db:"code"`
	Method         *string   `json:"method" db:"method"`
	RequestSummary *string   `json:"requestSummary" db:"request_summary"`
	OccurredAt     time.Time `json:"occurredAt" db:"occurred_at"`
}

func failures(ctx context.Context, d *db.DB, id uuid.UUID, limit, offset int) (page []Failure, total, recent int64, err error) {
	var b pgx.Batch
	var exists bool
	these := fmt.Sprintf(" from plugin_failure f where f.tenant_id = app.tenant() and f.plugin_id = $1 and f.occurred_at > now() - interval '%d hours'", int(keptFor.Hours()))
	db.Value(&b, &exists, "select exists (select from plugin where tenant_id = app.tenant() and id = $1)", id)
	db.All(&b, &page, "select "+failuresShown+these+" order by f.occurred_at desc, f.id limit $2 offset $3", id, limit, offset)
	db.Value(&b, &total, "select count(*)"+these, id)
	db.Value(&b, &recent, "select count(*)"+these+" and f.occurred_at > now() - $2::interval", id, window)
	if err := d.Run(ctx, &b); err != nil {
		return nil, 0, 0, err
	}
	if !exists {
		return nil, 0, 0, fault.Missing("Plugin")
	}
	return page, total, recent, nil
}
