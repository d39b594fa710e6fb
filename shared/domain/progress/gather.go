package progress

// MineOfPageSQL is SQL of two tables for a with clause, after a table page with ids of series. mine holds the caller's
// begun and completed books, unless there are more than four times as many (most) as books in the page. Lists of series
// use it with Completed to count the read books of each series: for 50 series with 1,000 books each, a lookup per book
// takes five times as long.
const MineOfPageSQL = `most as materialized (select 4 * coalesce(sum(x.book_count), 0) as books from page
	    cross join lateral (select s.book_count from series s where s.tenant_id = app.tenant() and s.id = page.id limit 1) x),
	  mine as materialized (select p.book_id, p.completed from progress p
	    where p.tenant_id = app.tenant() and p.account_id = app.account() limit (select books + 1 from most))`

// CompletedSQL is whether the caller has completed book b, null if the caller has not begun it. The statement must
// contain MineOfPageSQL.
const CompletedSQL = `case when (select count(*) from mine) > (select books from most)
	    then (select p.completed from progress p where p.tenant_id = app.tenant() and p.account_id = app.account() and p.book_id = b.id)
	    when b.id in (select book_id from mine where completed) then true
	    when b.id in (select book_id from mine where not completed) then false end`
