package progress

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// maxSessions is how many sessions are kept per user and book, newest first: at one every 30 seconds they cover forty
// hours.
const maxSessions = 5000

// maxLocators is how many sessions per user and book keep their locator, newest first, besides the last locator of the
// last pass. Only that one is read; the others are kept because sessions that are sent later may make one of them the
// last.
const maxLocators = 20

// maxCompletions is how many completions are kept per user and book, newest first; the history shows fewer.
const maxCompletions = 1000

// SQL for the log of reading sessions and the progress computed from it. Each statement applies to the caller's rows
// for the books b that match a condition. Postgres may have no statistics on sessions and progress yet: then it may use
// an index that does not contain the book, and a lookup per book reads all rows of the user each time. So the rows of
// all books are read at once (see rows) into a materialized CTE.

// lock serializes the writers of one user's progress: each then sees all sessions of the others.
const lock = "select from account where tenant_id = app.tenant() and id = app.account() for no key update"

// hold locks the books against being moved or deleted. It precedes the locks on what was read, as writers of books lock
// books first, too.
func hold(which string) string {
	return "select from book b where b.tenant_id = app.tenant() and " + which + " order by b.id for key share"
}

// noPlace fills the columns of a source of note that has only a page. The time is that of the statement, which follows
// lock: a write that waited for others comes after them.
const noPlace = ", null::text as locator, null::text as device_name, statement_timestamp() as at"

// sessionColumns are the columns of a session that stems from a plain write.
const sessionColumns = "tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at, page, percentage, implied"

// mine is the condition for the caller's rows of a book.
func mine(alias, book string) string {
	return alias + ".tenant_id = app.tenant() and " + alias + ".account_id = app.account() and " + alias + ".book_id = " + book
}

// hashing precedes the statements for many books: without statistics, Postgres would join them by comparing each book
// with each session.
const hashing = "select set_config('enable_nestloop', 'off', true)"

// looping ends hashing in a transaction: other statements would read whole tables for a few rows.
const looping = "select set_config('enable_nestloop', 'on', true)"

// rows is the condition for the caller's rows of the books $1. It compares with the parameter itself, because Postgres
// puts constants into a hash table, but searches other arrays from end to end for each row.
func rows(alias, which string) string {
	if strings.HasPrefix(which, ofBooks) {
		return mine(alias, "any($1)")
	}
	return mine(alias, "$1")
}

// known is SQL for the CTEs p, the progress in books, and last, the last pass and record in the log of each book.
func known(which string) string {
	return `with p as materialized (
	  select p.* from progress p join book b on b.tenant_id = p.tenant_id and b.id = p.book_id and ` + which + ` where ` + rows("p", which) + `),
	last as materialized (select s.book_id, max(s.pass) as pass, max(s.recorded_at) as recorded_at from reading_session s
	  where ` + rows("s", which) + ` group by s.book_id)`
}

// queueLog adds what precedes every write: progress without a session, stored by a program before sessions existed,
// becomes a session.
func queueLog(b *pgx.Batch, which string, args ...any) {
	b.Queue(lock)
	b.Queue(hold(which), args...)
	b.Queue(adopt(which), args...)
}

func adopt(which string) string {
	return known(which) + `
	insert into reading_session (` + sessionColumns + `, recorded_at)
	select p.tenant_id, p.account_id, gen_random_uuid(), p.book_id, coalesce(l.pass, 1),
	  case when p.completed then 'completed' else 'progress' end, 'legacy', least(p.started_at, e.at), e.at, p.current_page, p.percentage, true, p.updated_at
	from p left join last l on l.book_id = p.book_id
	cross join lateral (select case when p.completed then coalesce(p.completed_at, p.updated_at) else p.updated_at end as at) e
	where coalesce(l.recorded_at < p.updated_at, true)`
}

// note is SQL that logs plain writes in books: rows of source (book_id, page, percentage, kind, locator, device_name,
// at) from the device in the given parameter. Writes of one device within five minutes are one session; so are repeated
// completions of the same book by the device, if no other session came between.
func note(which, source, device string) string {
	return `with given as materialized (` + source + `),
	last as materialized (
	  select distinct on (s.book_id) s.book_id, s.id, s.pass, s.kind, s.implied, s.device_id, s.recorded_at from reading_session s
	  where ` + rows("s", which) + ` order by s.book_id, s.pass desc, s.ended_at desc, s.recorded_at desc, s.id desc),
	source as materialized (
	  select x.*, l.id as last_id, coalesce(l.pass, 1) as pass,
	    coalesce(l.implied and l.device_id = ` + device + ` and l.kind = x.kind and (x.kind = 'completed' or l.recorded_at > now() - interval '5 minutes'), false) as goes_on
	  from given x left join last l on l.book_id = x.book_id),
	merged as (
	  update reading_session s set (page, percentage, recorded_at, locator, device_name, ended_at) = (
	    select x.page, coalesce(x.percentage, s.percentage), now(), coalesce(x.locator, s.locator), coalesce(x.device_name, s.device_name),
	      case when x.kind = 'progress' then greatest(s.ended_at, x.at) else s.ended_at end from source x where x.last_id = s.id)
	  where ` + rows("s", which) + ` and s.id = any(array(select x.last_id from source x where x.goes_on)))
	insert into reading_session (` + sessionColumns + `, locator, device_name)
	select app.tenant(), app.account(), gen_random_uuid(), x.book_id, x.pass, x.kind, ` + device + `, x.at, x.at, x.page, x.percentage, true, x.locator, x.device_name
	from source x where not x.goes_on`
}

// reset is SQL that opens the next pass of the books that have progress, and counts them; $2 is the device.
func reset(which string) string {
	return known(which) + `, opened as (
	  insert into reading_session (` + sessionColumns + `)
	  select p.tenant_id, p.account_id, gen_random_uuid(), p.book_id, 1 + coalesce(l.pass, 1), 'reset', $2, statement_timestamp(), statement_timestamp(), null, null, true
	  from p left join last l on l.book_id = p.book_id returning 1)
	select count(*) from opened`
}

// fold is SQL that computes the progress in books from the sessions of their last pass, and logs each completed pass
// once. A following select may read the progress from written. Sessions count in the order in which they ended,
// regardless of when they were sent: the last page and percentage win, even if they are lower. A book stays completed
// until new progress is sent.
func fold(which string) string {
	return strings.Join([]string{
		`with these as materialized (select b.tenant_id, b.id, b.page_count, b.analyzed from book b where b.tenant_id = app.tenant() and ` + which + `)`,
		`log as materialized (select s.* from reading_session s where ` + rows("s", which) + `)`,
		// The sessions of each book, numbered from the first.
		`ordered as materialized (
	  select t.page_count, t.analyzed, s.*, row_number() over (partition by s.book_id order by s.pass, s.ended_at, s.recorded_at, s.id) as n,
	    count(*) over (partition by s.book_id) as sessions, max(s.pass) over (partition by s.book_id) as last_pass
	  from these t join log s on s.book_id = t.id)`,
		// Deletes the oldest sessions beyond maxSessions.
		`forgotten as (
	  delete from reading_session s where s.tenant_id = app.tenant() and s.account_id = app.account()
	    and s.id = any(array(select o.id from ordered o where o.n <= o.sessions - ` + strconv.Itoa(maxSessions) + `)))`,
		// Adds to each session the last one of its pass that has progress: a completion before that no longer holds.
		`told as (select o.*, max(o.n) filter (where o.kind = 'progress') over (partition by o.book_id, o.pass) as reopened from ordered o)`,
		// The passes of each book, with their sessions combined. Sessions deleted here do not count for updated_at:
		// otherwise the next write would take the progress for one without a session.
		`pass as materialized (
	  select o.tenant_id, o.book_id as id, o.page_count, o.analyzed, o.pass, o.pass = o.last_pass as is_last, min(o.started_at) as started_at,
	    max(o.recorded_at) filter (where o.n > o.sessions - ` + strconv.Itoa(maxSessions) + `) as updated_at,
	    (array_agg(o.page order by o.n desc) filter (where o.page is not null))[1] as page,
	    (array_agg(o.percentage order by o.n desc) filter (where o.percentage is not null))[1] as percentage,
	    min(o.ended_at) filter (where o.kind = 'completed') as first_completed_at,
	    max(o.n) filter (where o.locator is not null) as located,
	    min(o.ended_at) filter (where o.kind = 'completed' and o.n > coalesce(o.reopened, 0)) as completed_at
	  from told o where o.kind <> 'reset' group by o.tenant_id, o.book_id, o.page_count, o.analyzed, o.pass, o.last_pass)`,
		// Deletes the locators beyond maxLocators, except the last one of the last pass.
		`thinned as (
	  update reading_session s set locator = null where s.tenant_id = app.tenant() and s.account_id = app.account()
	    and s.id = any(array(select o.id from ordered o where o.locator is not null
	      and o.n <= o.sessions - ` + strconv.Itoa(maxLocators) + ` and o.n > o.sessions - ` + strconv.Itoa(maxSessions) + `
	      and (o.book_id, o.n) not in (select b.id, b.located from pass b where b.is_last and b.located is not null))))`,
		`ends as materialized (select c.book_id, c.pass, c.completed_at from completion c where ` + rows("c", which) + `)`,
		// The completed passes that are not logged.
		`unlogged as materialized (
	  select b.id as book_id, b.pass, b.started_at, b.first_completed_at as completed_at from pass b
	  where b.first_completed_at is not null and (b.id, b.pass) not in (select c.book_id, c.pass from ends c where c.pass is not null))`,
		// The oldest completion to keep of each book that has more than maxCompletions. It counts the passes that are not
		// logged, so that those whose completion was deleted are not logged again.
		`oldest as materialized (
	  select x.book_id, x.completed_at from (
	    select e.book_id, e.completed_at, row_number() over (partition by e.book_id order by e.completed_at desc) as n
	    from (select book_id, completed_at from ends union select book_id, completed_at from unlogged) e) x
	  where x.n = ` + strconv.Itoa(maxCompletions) + `)`,
		// Logs completed passes.
		`logged as (
	  insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at, pass)
	  select app.tenant(), gen_random_uuid(), app.account(), u.book_id, u.started_at, u.completed_at, u.pass from unlogged u
	  where not exists (select from oldest o where o.book_id = u.book_id and u.completed_at < o.completed_at)
	  on conflict (tenant_id, account_id, book_id, completed_at) do nothing)`,
		`past as (
	  delete from completion c using oldest o where ` + mine("c", "o.book_id") + ` and c.completed_at < o.completed_at)`,
		// A book whose last pass is only opened, or that has no session, has no progress.
		`gone as (
	  delete from progress p where ` + rows("p", which) + `
	    and p.book_id = any(array(select t.id from these t except select b.id from pass b where b.is_last)))`,
		// The last pass is the progress. If no session of it has a page, the page follows from the rest.
		`written as (
	  insert into progress as p (tenant_id, account_id, book_id, id, current_page, percentage, completed, completed_at, started_at, updated_at)
	  select app.tenant(), app.account(), b.id, gen_random_uuid(), case when at.page > b.page_count and ` + paged + ` then b.page_count else at.page end,
	    b.percentage, b.completed_at is not null, b.completed_at, b.started_at, b.updated_at
	  from pass b cross join lateral (select coalesce(b.page, case when b.completed_at is not null then b.page_count
	    when b.percentage is not null then ` + pageAt("b.percentage") + ` end, 0) as page) at
	  where b.is_last order by b.id
	  on conflict (tenant_id, account_id, book_id) do update set current_page = excluded.current_page, percentage = excluded.percentage,
	    completed = excluded.completed, completed_at = excluded.completed_at, started_at = excluded.started_at, updated_at = excluded.updated_at
	  returning *)
	`,
	}, ",\n\t")
}

// records is the select after fold that returns the progress.
const records = "select " + columns + " from written p join book b on b.tenant_id = p.tenant_id and b.id = p.book_id"
