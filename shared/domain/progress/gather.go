package progress

// MineOfPage is SQL of two tables for a with clause, after one named page that has the ids of series: mine is what the
// caller has begun or completed, unless that is more than four times (most) the books of the page. Lists of series
// count with Completed what is read of each: of 50 series with 1,000 books each, looking every book up takes five times
// as long.
const MineOfPage = `most as materialized (select 4 * coalesce(sum(x.book_count), 0) as books from page
	    cross join lateral (select s.book_count from series s where s.tenant_id = app.tenant() and s.id = page.id limit 1) x),
	  mine as materialized (select p.book_id, p.completed from progress p
	    where p.tenant_id = app.tenant() and p.account_id = app.account() limit (select books + 1 from most))`

// Completed is SQL for whether the caller has completed the book b, null where they have not begun it, in a statement
// with MineOfPage.
const Completed = `case when (select count(*) from mine) > (select books from most)
	    then (select p.completed from progress p where p.tenant_id = app.tenant() and p.account_id = app.account() and p.book_id = b.id)
	    when b.id in (select book_id from mine where completed) then true
	    when b.id in (select book_id from mine where not completed) then false end`
