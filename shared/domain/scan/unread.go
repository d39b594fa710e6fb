package scan

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
)

// ErrorsKept is the maximum number of error texts that a scan stores; each book stores its own.
const ErrorsKept = 50

// QueueUnread counts as errors of a scan the files that its tasks have left unread: those that have failed, or the one
// that fails now, with the given text. Each counts once. They are no errors of the books: the next scan reads them.
func QueueUnread(b *pgx.Batch, scan, failing *uuid.UUID, text *string) {
	b.Queue(`with failed as (
		  update task t set params = t.params || '{"told": true}' where t.tenant_id = app.tenant() and t.parent_id = $1 and t.type = 'analyze_books'
		    and (t.id = $2 or $2 is null and t.status = 'failed') and not t.params ? 'told' returning t.id, t.library_id, t.params, t.last_error),
		told as (
		  select f.id, coalesce($3, left(f.last_error, 450), 'The task failed') || '; the next scan tries again' as text,
		    (select count(*) from jsonb_array_elements_text(f.params -> 'keys') as u(key)
		      join book b on b.tenant_id = app.tenant() and b.library_id = f.library_id and b.key = u.key and b.deleted_at is null and `+book.NeverReadSQL+`)
		    + (select count(*) from jsonb_array_elements_text(f.params -> 'sidecars') as u(key)
		      join sidecar k on k.tenant_id = app.tenant() and k.library_id = f.library_id and k.key = u.key and k.pending) as unread
		  from failed f)
		update scan set error_count = error_count + (select sum(greatest(unread, 1)) from told),
		  errors = (errors || array(select text from told order by id))[1:$4]
		where tenant_id = app.tenant() and id = $1 and exists (select from told)`, scan, failing, text, ErrorsKept)
}
