package book

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/httpapi"
)

// ListQuery selects and orders books for another interface.
type ListQuery struct {
	Library, Series *uuid.UUID      // limits the list to these
	Condition       json.RawMessage // as POST /books/list takes it
	Find            *string         // the search text for titles, normalized by naming.Normalize
	Sort            httpapi.Sorting
}

// Listed is a list of books that another package renders in its own way.
type Listed struct{ query query }

// List returns the list that w describes; an invalid condition or order is a BadRequest.
func List(w ListQuery) (*Listed, error) {
	s, err := w.scope()
	if err != nil {
		return nil, err
	}
	field, desc, err := s.order(w.Sort)
	if err != nil {
		return nil, err
	}
	return &Listed{all(s, field, desc)}, nil
}

// ListRead returns the books of w that the caller has progress in, latest read first. It ignores Find and Sort.
func ListRead(w ListQuery) (*Listed, error) {
	s, err := w.scope()
	if err != nil {
		return nil, err
	}
	return &Listed{touched(s, false)}, nil
}

// ListOnDeck returns the next book of each series that the caller reads and has no open book in; libraries
// limits it, unless there are none. They must be ids.
func ListOnDeck(libraries []string) *Listed {
	var s scope
	if len(libraries) > 0 {
		s = scope{where: "b.library_id = any($1::text[]::uuid[])", args: []any{libraries}}
	}
	return &Listed{onDeck(s, "", false)}
}

// ListOne returns one book, unless its file is gone.
func ListOne(id uuid.UUID) *Listed {
	return &Listed{query{ids: "select b.id from book b where b.tenant_id = app.tenant() and b.id = $1 and b.deleted_at is null", args: []any{id}}}
}

// ListNext returns the next book in the order of the series, none at the end.
func ListNext(id uuid.UUID) *Listed { return &Listed{query{ids: nextSQL, args: []any{id}}} }

// ListPrevious returns the previous book in the order of the series, none at the beginning.
func ListPrevious(id uuid.UUID) *Listed { return &Listed{query{ids: prevSQL, args: []any{id}}} }

// Selected returns a list from SQL: ids selects the ids in order, total counts them; both take args.
func Selected(ids, total string, args ...any) *Listed {
	return &Listed{query{ids: ids, total: total, args: args, totalArgs: args}}
}

// Queue adds a page and the total of the list to the batch; load returns both after the batch has run.
func (l *Listed) Queue(b *pgx.Batch, limit, offset int) (load func() ([]Book, int64)) {
	var rows []row
	var total int64
	l.query.queue(b, &rows, &total, limit, offset)
	return func() ([]Book, int64) { return books(rows), total }
}

// Reordered returns the list in another order: join joins the ids l.id with the table that orders them; $n in it stands
// for arg.
func (l *Listed) Reordered(join string, arg any) *Listed {
	q := l.query
	q.args = append(append([]any{}, q.args...), arg)
	q.back = ""
	q.ids = "select l.id from (" + q.ids + ") l " + strings.ReplaceAll(join, "$n", fmt.Sprintf("$%d", len(q.args)))
	return &Listed{q}
}

// Page returns SQL for the ids of a page in order, and its parameters.
func (l *Listed) Page(limit, offset int) (string, []any) {
	args := append(append([]any{}, l.query.args...), limit, offset)
	return l.query.page(offset), args
}

// Total returns SQL for the number of books, and its parameters.
func (l *Listed) Total() (string, []any) { return l.query.total, l.query.totalArgs }

func (w ListQuery) scope() (scope, error) {
	s, err := conditioned(w.Condition, w.Find)
	s.library, s.series = cmp.Or(w.Library, s.library), cmp.Or(w.Series, s.series)
	return s, err
}
