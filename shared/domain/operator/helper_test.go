package operator_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/operator"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// rig is an operator over real services.
type rig struct {
	*operator.Operator
	t  *testing.T
	db *testkit.Databases
	s3 *testkit.S3
}

func newRig(t *testing.T) *rig {
	t.Helper()
	d, s3 := testkit.DB(t), testkit.StartS3(t, "books")
	client := testkit.Redis(t)
	return &rig{t: t, db: d, s3: s3, Operator: &operator.Operator{System: d.System, Redis: client, Events: events.New(client, events.Config{}, nil),
		Media: s3.Config.Media(), Library: s3.Config.Library(), Bucket: s3.Config.MediaBucket, Temp: t.TempDir()}}
}

// do runs a command line that must succeed.
func (r *rig) do(args ...string) any {
	r.t.Helper()
	out, err := r.Run(context.Background(), args)
	if err != nil {
		r.t.Fatalf("operator %v: %v", args, err)
	}
	return out
}

func (r *rig) details(args ...string) *operator.Details {
	r.t.Helper()
	d, ok := r.do(args...).(*operator.Details)
	if !ok {
		r.t.Fatalf("operator %v: no tenant in the answer", args)
	}
	return d
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	r.db.Exec(r.t, sql, args...)
}

func (r *rig) number(sql string, args ...any) (n int64) {
	r.t.Helper()
	if err := r.db.Owner.Pool().QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// fill gives a tenant rows in every table, objects, and keys in Redis.
func (r *rig) fill(id uuid.UUID, books int) {
	r.t.Helper()
	r.exec("insert into account (tenant_id, id, username, email, password_hash, role) values ($1, $1, 'user', 'user@example.org', 'argon', 'reader')", id)
	for _, sql := range []string{
		"insert into refresh_token (tenant_id, id, account_id, family_id, hash, expires_at) values ($1, $1, $1, $1, 'refresh-hash', now() + interval '1 day')",
		"insert into verification_token (tenant_id, account_id, hash, expires_at) values ($1, $1, 'verify-hash', now() + interval '1 day')",
		"insert into api_key (tenant_id, id, account_id, name, prefix, hash, permissions) values ($1, $1, $1, 'key', 'lbx_1', decode(repeat('ab', 32), 'hex'), '{}')",
		"insert into setting (tenant_id, key, value) values ($1, 'application.name', 'Filled')",
		"insert into setting_schedule (tenant_id, key, cron, next_at) values ($1, 'application.name', '* * * * *', now())",
		"insert into setting_history (tenant_id, id, key, old_value, new_value) values ($1, $1, 'application.name', '', 'Filled')",
		"insert into preference (tenant_id, account_id, key, value) values ($1, $1, 'reader.theme', '1')",
		"insert into library_root (tenant_id, path, bucket) values ($1, '/filled', 'books')",
		`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
			values ($1, $1, 'Books', '/filled', 'books', '', 'series_volume', 'filename', 'file_order')`,
		`insert into plugin (tenant_id, id, name, display_name, plugin_type, command, credential_delivery, credentials, enabled, use_existing_external_id)
			values ($1, $1, 'test', 'Test', 'system', 'node', 'env', 'sealed', false, true)`,
		"insert into plugin_failure (tenant_id, id, plugin_id, code, message) values ($1, $1, $1, 'RPC_ERROR', 'x')",
		"insert into plugin_method (tenant_id, plugin_id, method, requests, failed, refused, total_ms) values ($1, $1, 'ping', 1, 0, 0, 1)",
		"insert into plugin_schedule (tenant_id, plugin_id, cron) values ($1, $1, '0 0 * * *')",
		"insert into user_plugin (tenant_id, id, account_id, plugin_id, credentials) values ($1, $1, $1, $1, 'sealed')",
		"insert into user_plugin_data (tenant_id, user_plugin_id, key, data, updated_at) values ($1, $1, 'k', '1', now())",
		"insert into user_plugin_sign_in (tenant_id, state, user_plugin_id, verifier, redirect_uri, expires_at) values ($1, 's', $1, 'v', 'https://example.org', now())",
		`insert into library_job (tenant_id, id, library_id, name, enabled, cron_schedule, config)
			values ($1, $1, $1, 'Refresh', false, '0 3 * * *', '{"type": "metadata_refresh", "provider": "plugin:test"}')`,
		"insert into duplicate (tenant_id, id, fingerprint) values ($1, $1, 'f')",
		"insert into series_duplicate (tenant_id, id, library_id, value) values ($1, $1, $1, 's')",
		"insert into sidecar (tenant_id, library_id, key, kind, about, version, size, modified_at) values ($1, $1, 's1/series.json', 'series', 's1', $1, 2, now())",
		`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
			select $1, case n when 1 then $1 else gen_random_uuid() end, $1, 's' || n, 's' || n, 's', 's', 's' from generate_series(1, 5) n`,
		"insert into genre (tenant_id, id, name) values ($1, $1, 'Drama')",
		"insert into series_genre (tenant_id, series_id, genre_id) select tenant_id, id, tenant_id from series where tenant_id = $1",
		"insert into tag (tenant_id, id, name) values ($1, $1, 'Colour')",
		"insert into series_tag (tenant_id, series_id, tag_id) select tenant_id, id, tenant_id from series where tenant_id = $1",
		"insert into external_link (tenant_id, id, series_id, source_name, url) select tenant_id, gen_random_uuid(), id, 'x', 'http://x' from series where tenant_id = $1",
		"insert into external_id (tenant_id, id, series_id, source, external_id) select tenant_id, gen_random_uuid(), id, 'x', '1' from series where tenant_id = $1",
		"insert into external_rating (tenant_id, id, series_id, source_name, rating) select tenant_id, gen_random_uuid(), id, 'x', 50 from series where tenant_id = $1",
		"insert into alternate_title (tenant_id, id, series_id, label, title) select tenant_id, gen_random_uuid(), id, 'x', 'y' from series where tenant_id = $1",
		"insert into task (tenant_id, id, type, library_id) values ($1, $1, 'scan_library', $1)",
		`insert into task_metric (tenant_id, hour, type, succeeded, failed, retried, timed, duration_ms, durations, waited, wait_ms)
			values ($1, '2025-01-01', 'scan_library', 0, 1, 0, 0, 0, array_fill(0, array[96]), 0, 0)`,
		"insert into scan (tenant_id, id, library_id, mode) values ($1, $1, $1, 'normal')",
		"insert into rendition_usage (tenant_id, bytes) values ($1, 5)",
		"insert into cover_sweep (tenant_id, due_at) values ($1, now())",
	} {
		r.exec(sql, id)
	}
	r.exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, page_count)
		select $1, case n when 1 then $1 else gen_random_uuid() end, $1, s.id, s.path || '/' || n, 1000, now(), 'cbz', 't' || n, 't' || n, 't', 10
		from generate_series(1, $2) n join lateral (select id, path from series where tenant_id = $1 order by path offset n % 5 limit 1) s on true`, id, books)
	for _, sql := range []string{
		"insert into book_metadata (tenant_id, book_id) select tenant_id, id from book where tenant_id = $1",
		`insert into page_index (tenant_id, book_id, revision, names, types, offsets, lengths, packed, sizes, methods, crcs, widths, heights, file_size, file_etag, file_modified)
			select tenant_id, id, 0, '{a}', '{b}', '{1}', '{1}', '{1}', '{1}', '{0}', '{1}', '{1}', '{1}', size, etag, modified_at from book where tenant_id = $1`,
		"insert into progress (tenant_id, account_id, book_id, id, current_page) select tenant_id, $1, id, gen_random_uuid(), 1 from book where tenant_id = $1",
		`insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at)
			select tenant_id, $1, gen_random_uuid(), id, 1, 'progress', 'd', now(), now() from book where tenant_id = $1`,
		"insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at) select tenant_id, gen_random_uuid(), $1, id, now(), now() from book where tenant_id = $1",
		"insert into koreader_digest (tenant_id, book_id, digest, file_size, file_etag, file_modified) select tenant_id, id, 'd', 1, '', now() from book where tenant_id = $1",
		"insert into wanted (tenant_id, account_id, id, book_id, place) select tenant_id, $1, id, id, 1 from book where tenant_id = $1",
		"insert into series_tracking (tenant_id, series_id) select tenant_id, id from series where tenant_id = $1",
		"insert into series_alias (tenant_id, id, series_id, alias, normalized, source) select tenant_id, id, id, 'a', 'a', 'manual' from series where tenant_id = $1",
		"insert into release_source (tenant_id, id, plugin_id, name, display_name, kind) values ($1, $1, $1, 'feed', 'Feed', 'api-feed')",
		"insert into release (tenant_id, id, source_id, series_id, external_release_id, payload_url, confidence, state, observed_at) select tenant_id, id, $1, id, id, 'https://x', 1, 'announced', now() from series where tenant_id = $1",
		"insert into series_rating (tenant_id, account_id, series_id, id, rating) select tenant_id, $1, id, id, 50 from series where tenant_id = $1",
		"insert into series_cover (tenant_id, id, series_id, fingerprint, type, image, size) select tenant_id, id, id, 'f', 'image/png', 'x', 1 from series where tenant_id = $1",
		"insert into book_cover (tenant_id, id, book_id, fingerprint, type, image, size) select tenant_id, id, id, 'f', 'image/png', 'x', 1 from book where tenant_id = $1",
		"insert into book_genre (tenant_id, book_id, genre_id) select tenant_id, id, tenant_id from book where tenant_id = $1",
		"insert into book_tag (tenant_id, book_id, tag_id) select tenant_id, id, tenant_id from book where tenant_id = $1",
		"insert into filter_preset (tenant_id, account_id, id, name, scope, target, condition) values ($1, $1, $1, 'Mine', 'list', 'books', '{}')",
		`insert into series_export (tenant_id, account_id, id, format, export_type, library_ids, fields, book_fields, expires_at)
			values ($1, $1, $1, 'csv', 'series', '{}', '{}', '{}', now())`,
		"insert into export_cleanup (tenant_id) values ($1)",
		"insert into term_fill (tenant_id) values ($1)",
		"insert into alternate_title_fill (tenant_id) values ($1)",
		"insert into release_fill (tenant_id) values ($1)",
		"insert into sharing_tag (tenant_id, id, name) values ($1, $1, 'Some')",
		"insert into access_group (tenant_id, id, name) values ($1, $1, 'Family')",
		"insert into access_group_member (tenant_id, group_id, account_id) values ($1, $1, $1)",
		"insert into access_group_oidc_mapping (tenant_id, id, group_id, oidc_group_name) values ($1, $1, $1, 'family')",
		`insert into oidc_provider (tenant_id, id, name, display_name, issuer, client_id, client_secret, scopes, groups_claim, username_claim, email_claim,
			create_users, default_role, enabled) values ($1, $1, 'test', 'Test', 'https://id.example.org', 'longbox', 'sealed', '{openid}', 'groups', 'name', 'email', true, 'reader', true)`,
		"insert into access_group_claim (tenant_id, group_id, account_id, provider_id) values ($1, $1, $1, $1)",
		"insert into oidc_state (tenant_id, hash, browser, provider_id, expires_at) values ($1, sha256('state'), sha256('browser'), $1, now() + interval '1 day')",
		"insert into oidc_keys (tenant_id, provider_id, issuer, keys) values ($1, $1, 'https://id.example.org', '{}')",
		"insert into oidc_identity (tenant_id, provider_id, subject, account_id) values ($1, $1, 'subject', $1)",
		"insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) select tenant_id, id, $1 from series where tenant_id = $1",
		"insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, $1, $1, $1, 'deny')",
		"insert into collection (tenant_id, id, kind, name) values ($1, $1, 'books', 'Best')",
		"insert into collection_member (tenant_id, id, collection_id, book_id, place) select tenant_id, id, $1, id, 1 from book where tenant_id = $1",
	} {
		r.exec(sql, id)
	}
	for table, n := range r.rows(id) {
		if n == 0 {
			r.fillAny(table, id)
		}
	}
	ctx := context.Background()
	for _, key := range []string{id.String() + "/cover/ab/1", "page/" + id.String() + "/ab/2", "page/" + id.String() + "/cd/3", "export/" + id.String() + "/old.zip"} {
		if err := r.Media.Put(ctx, r.Bucket, key, "image/jpeg", []byte("12345")); err != nil {
			r.t.Fatal(err)
		}
	}
	for _, key := range []string{":gen", ":stream:tasks", ":rate:ip:1.2.3.4"} {
		if err := r.Redis.Set(ctx, "lb:{"+id.String()+"}"+key, "1", 0).Err(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// fillAny inserts a row into an unknown table: the tenant's id for every id, and the simplest value of each type.
func (r *rig) fillAny(table string, id uuid.UUID) {
	r.t.Helper()
	var names, values []string
	if err := r.db.Owner.Pool().QueryRow(context.Background(), `select array_agg(quote_ident(a.attname)), array_agg(case
		  when a.attndims > 0 then quote_literal('{}') when t.typname = 'uuid' then '$1' when t.typcategory = 'N' then '1' when t.typcategory = 'B' then 'true'
		  when t.typcategory = 'D' then 'now()' when t.typname = 'jsonb' then quote_literal('{}') when t.typname = 'bytea' then 'decode(repeat(''ab'', 32), ''hex'')'
		  else quote_literal('x') end)
		from pg_attribute a join pg_type t on t.oid = a.atttypid
		where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped and a.attnotnull and not a.atthasdef`, table).Scan(&names, &values); err != nil {
		r.t.Fatal(err)
	}
	sql := "insert into " + table + " (" + strings.Join(names, ", ") + ") values (" + strings.Join(values, ", ") + ")"
	if _, err := r.db.Owner.Pool().Exec(context.Background(), sql, id); err != nil {
		r.t.Fatalf("%s is new: add a row of it to fill: %v", table, err)
	}
}

// rows counts the rows of a tenant by table.
func (r *rig) rows(id uuid.UUID) map[string]int64 {
	r.t.Helper()
	var tables []string
	if err := r.db.Owner.Pool().QueryRow(context.Background(), `select array_agg(c.relname::text) from pg_class c join pg_attribute a on a.attrelid = c.oid
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and a.attname = 'tenant_id' and not a.attisdropped`).Scan(&tables); err != nil {
		r.t.Fatal(err)
	}
	out := map[string]int64{"tenant": r.number("select count(*) from tenant where id = $1", id)}
	for _, table := range tables {
		out[table] = r.number("select count(*) from "+table+" where tenant_id = $1", id)
	}
	return out
}

// objects counts the objects in the media bucket with the tenant's id in the key.
func (r *rig) objects(id uuid.UUID) (n int) {
	r.t.Helper()
	for page, err := range r.Media.List(context.Background(), r.Bucket, "", "") {
		if err != nil {
			r.t.Fatal(err)
		}
		for _, o := range page {
			if strings.Contains(o.Key, id.String()) {
				n++
			}
		}
	}
	return n
}
