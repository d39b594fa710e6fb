package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// crowd is a tenant with generated books.
type crowd struct {
	name   string
	nth    int // Number of the tenant: its ids derive from it.
	books  int
	long   bool // series of 1,000 books, and every account has read 20,000 books
	tenant uuid.UUID
	client *client
}

// seeds are the statements that fill a tenant. $1 is the tenant, $2 its number, $3 its number of books. Ids grow with
// the rows, as real ones do with time. A series has 10 to 100 books.
var seeds = []string{
	`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
	 select $1, crowd_id($2, 1, n), 'Library ' || n, '/l' || n, 'b', n || '/', 'series_volume', 'filename', 'file_order'
	 from generate_series(1, 4) n where $3::integer > 0`,
	`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, year, book_count, file_size, page_count, created_at, updated_at)
	 select $1, crowd_id($2, 2, n), crowd_id($2, 1, 1 + n % 4), 'Series ' || n, 'Series ' || n, t, t, lower(t), 1950 + n % 70, 0, 0, 0,
	   now() - n * interval '1 second', now() - n * interval '1 second'
	 from generate_series(1, greatest($3::integer / 50, 1)) n,
	   lateral (select initcap(substr(md5(n::text), 1, 6)) || ' Saga ' || n % 97 as t) t`,
	`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, number,
	   volume, page_count, analyzed, created_at, updated_at)
	 select s.tenant_id, crowd_id($2, 3, nth), s.library_id, s.id, s.path || '/' || n || '.cbz', 1000000 + nth % 5000000, now(), 'cbz',
	   s.title || ' ' || n, s.title || ' ' || n, lower(s.title), n, n, 20 + n, true, s.created_at, s.created_at
	 from (select s.*, n, row_number() over (order by s.id, n) as nth
	   from (select *, row_number() over (order by id) as i from series where tenant_id = $1) s, generate_series(1, 10 + (s.i * 37)::integer % 91) n) s
	 where nth <= $3::integer and $2::integer > 0`,
	// Three books in four have a publication date, and one series in ten has external ratings.
	`insert into book_metadata (tenant_id, book_id, metadata) select tenant_id, id, case when size % 4 = 0 then '{"summary":"A story."}'
	   else jsonb_build_object('summary', 'A story.', 'year', 1950 + size % 70, 'month', 1 + size % 12) end
	 from book where tenant_id = $1 and $2::integer > 0 and $3::integer > 0`,
	`insert into external_rating (tenant_id, id, series_id, source_name, rating)
	 select tenant_id, gen_random_uuid(), id, 'somebody', 100 * random() from (select *, row_number() over (order by id) as i from series where tenant_id = $1) s
	 where i % 10 = 0 and $2::integer > 0 and $3::integer > 0`,
	// One book in a hundred has a page index: more would only take space.
	`insert into page_index (tenant_id, book_id, revision, file_size, file_etag, file_modified, names, types, offsets, lengths, packed, sizes, methods, crcs, widths, heights)
	 select b.tenant_id, b.id, 1, b.size, '', b.modified_at, '{1.jpg}', '{image/jpeg}', '{0}', '{1}', '{1}', '{1}', '{0}', '{0}', '{0}', '{0}'
	 from (select *, row_number() over (order by id) as nth from book where tenant_id = $1) b where nth % 100 = 0 and $2::integer > 0 and $3::integer > 0`,
	// Each series has two of 40 genres; most series share one of them.
	`insert into genre (tenant_id, id, name) select $1, crowd_id($2, 6, n), 'Genre ' || n from generate_series(1, 40) n where $3::integer > 0`,
	`insert into series_genre (tenant_id, series_id, genre_id)
	 select s.tenant_id, s.id, crowd_id($2, 6, g) from (select *, row_number() over (order by id) as i from series where tenant_id = $1) s,
	   lateral (select distinct unnest(array[1 + s.i % 40, case when s.i % 5 = 0 then 3 else 2 end]) as g) x where $3::integer > 0`,
	`insert into tag (tenant_id, id, name) select tenant_id, gen_random_uuid(), replace(name, 'Genre', 'Tag') from genre
	 where tenant_id = $1 and $2::integer > 0 and $3::integer > 0`,
	`insert into series_tag (tenant_id, series_id, tag_id) select s.tenant_id, s.series_id, t.id from series_genre s
	 join genre g on g.tenant_id = s.tenant_id and g.id = s.genre_id join tag t on t.tenant_id = g.tenant_id and t.name = replace(g.name, 'Genre', 'Tag')
	 where s.tenant_id = $1 and $2::integer > 0 and $3::integer > 0`,
	// Every account has read 200 books. The administrator of the benchmark is one of 20.
	`insert into account (tenant_id, id, username, email, password_hash, role)
	 select $1, crowd_id($2, 4, n), 'reader' || n, 'reader' || n, '', 'reader' from generate_series(1, 19) n where $3::integer > 0`,
	`insert into progress (tenant_id, account_id, book_id, id, current_page, completed, updated_at)
	 select $1, a.id, crowd_id($2, 3, 1 + (n * 7919 + a.i * 31) % $3::integer), crowd_id($2, 5, a.i * 1000 + n), 3, n % 10 <> 0, now() - n * interval '1 minute'
	 from (select id, row_number() over (order by id) as i from account where tenant_id = $1) a, generate_series(1, 200) n
	 on conflict do nothing`,
	`insert into series_rating (tenant_id, account_id, series_id, id, rating)
	 select s.tenant_id, a.id, s.id, gen_random_uuid(), 1 + (100 * random())::integer % 100
	 from (select *, row_number() over (order by id) as i from series where tenant_id = $1) s, account a
	 where a.tenant_id = $1 and i % 10 = 1 and $2::integer > 0 and $3::integer > 0`,
	`update series s set book_count = c.n, file_size = c.bytes, page_count = c.pages
	 from (select series_id, count(*) n, sum(size) bytes, sum(page_count) pages from book where tenant_id = $1 group by 1) c
	 where s.tenant_id = $1 and s.id = c.series_id and $2::integer > 0 and $3::integer > 0`,
	`insert into library_count (tenant_id, library_id, books, series, bytes, pages)
	 select $1, l.id, coalesce(sum(s.book_count), 0), count(s.id), coalesce(sum(s.file_size), 0), coalesce(sum(s.page_count), 0)
	 from library l left join series s on s.tenant_id = l.tenant_id and s.library_id = l.id
	 where l.tenant_id = $1 and $2::integer > 0 and $3::integer > 0 group by l.id`,
}

// ofLong changes seeds for a long crowd.
var ofLong = strings.NewReplacer("$3::integer / 50,", "$3::integer / 1000,", "10 + (s.i * 37)::integer % 91", "1000",
	"generate_series(1, 200)", "generate_series(1, 20000)", "a.i * 1000 +", "a.i * 100000 +")

// seed fills the tenants with triggers and foreign keys off, and makes an administrator's client for each.
func (s *system) seed(ctx context.Context, crowds []*crowd) error {
	for _, sql := range []string{
		`create or replace function crowd_id(tenant integer, kind integer, n bigint) returns uuid language sql immutable parallel safe
		 as $$ select (lpad(to_hex(n), 8, '0') || '-0000-7000-8000-' || lpad(kind::text, 6, '0') || lpad(tenant::text, 6, '0'))::uuid $$`,
		"set session_replication_role = replica", "set synchronous_commit = off", "set work_mem = '256MB'",
	} {
		if _, err := s.admin.Exec(ctx, sql); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
	for _, c := range crowds {
		if err := s.seedOne(ctx, c); err != nil {
			return fmt.Errorf("seed %s: %w", c.name, err)
		}
	}
	for _, sql := range []string{"reset session_replication_role", "reset synchronous_commit", "reset work_mem", "vacuum analyze", "checkpoint"} {
		if _, err := s.admin.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

func (s *system) seedOne(ctx context.Context, c *crowd) error {
	if err := s.seedTenant(ctx, c); err != nil {
		return err
	}
	for _, sql := range seeds {
		if c.long {
			sql = ofLong.Replace(sql)
		}
		if _, err := s.admin.Exec(ctx, sql, c.tenant, c.nth, c.books); err != nil {
			return err
		}
	}
	var books int
	err := s.admin.QueryRow(ctx, "select count(*) from book where tenant_id = $1", c.tenant).Scan(&books)
	if err == nil && books != c.books {
		err = fmt.Errorf("%d of %d books were made", books, c.books)
	}
	return err
}

// seedTenant creates a tenant with an administrator and their client.
func (s *system) seedTenant(ctx context.Context, c *crowd) error {
	c.tenant = uuid.New()
	user := uuid.New()
	host := c.name + ".test"
	if _, err := s.admin.Exec(ctx, "insert into tenant (id, name, hosts, secret) values ($1, $2, $3, $4)",
		c.tenant, c.name, []string{host}, append(c.tenant[:], user[:]...)); err != nil {
		return err
	}
	if _, err := s.admin.Exec(ctx, `insert into account (tenant_id, id, username, email, password_hash, role)
		values ($1, $2, 'bench', 'bench', '', 'admin')`, c.tenant, user); err != nil {
		return err
	}
	token, err := s.sign(c.tenant, user)
	if err != nil {
		return err
	}
	c.client = newClient(token)
	c.client.host = host
	return nil
}
