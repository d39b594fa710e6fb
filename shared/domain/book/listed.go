package book

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Wanted says which books another interface shows, and in which order.
type Wanted struct {
	Library, Series *uuid.UUID      // only of these
	Condition       json.RawMessage // as POST /books/list takes it
	Find            *string         // what titles are searched for, as naming.Normalize writes it
	Sort            httpapi.Sorting
}

// Listed is a list of books that another package shows in its own way.
type Listed struct{ query query }

// List is the list of books that is wanted; BadRequest for a condition or an order that there is not.
func List(w Wanted) (*Listed, error) {
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

// ListRead is the list of those books of what is wanted that the caller has progress in, the latest read first; Find
// and Sort do not count.
func ListRead(w Wanted) (*Listed, error) {
	s, err := w.scope()
	if err != nil {
		return nil, err
	}
	return &Listed{touched(s, false)}, nil
}

// ListOnDeck is the next book of each series that the caller reads and has none open of; of a library, where one is
// named.
func ListOnDeck(library *uuid.UUID) *Listed {
	return &Listed{onDeck(scope{library: library}, "", false)}
}

// ListOne is one book that is there.
func ListOne(id uuid.UUID) *Listed {
	return &Listed{query{ids: "select b.id from book b where b.tenant_id = app.tenant() and b.id = $1 and b.deleted_at is null", args: []any{id}}}
}

// ListNext is the book after one in the order of its series, none at the end; ListPrevious is the one before.
func ListNext(id uuid.UUID) *Listed { return &Listed{query{ids: nextSQL, args: []any{id}}} }

// ListPrevious is the book before one in the order of its series, none at the beginning.
func ListPrevious(id uuid.UUID) *Listed { return &Listed{query{ids: prevSQL, args: []any{id}}} }

// Selected is a list that another package selects: ids of books in order and their number, both of args.
func Selected(ids, total string, args ...any) *Listed {
	return &Listed{query{ids: ids, total: total, args: args, totalArgs: args}}
}

// Queue asks for a page and the total of the list as this package shows it; load has both, once the batch has run.
func (l *Listed) Queue(b *pgx.Batch, limit, offset int) (load func() ([]Book, int64)) {
	var rows []row
	var total int64
	l.query.queue(b, &rows, &total, limit, offset)
	return func() ([]Book, int64) { return books(rows), total }
}

// Reordered is the list in another order: the ids l.id, joined with what has the order. $n in join stands for arg.
func (l *Listed) Reordered(join string, arg any) *Listed {
	q := l.query
	q.args = append(append([]any{}, q.args...), arg)
	q.ids = "select l.id from (" + q.ids + ") l " + strings.ReplaceAll(join, "$n", fmt.Sprintf("$%d", len(q.args)))
	return &Listed{q}
}

// Page is SQL that selects the ids of a page of the list, in order, and its parameters.
func (l *Listed) Page(limit, offset int) (string, []any) {
	args := append(append([]any{}, l.query.args...), limit, offset)
	return l.query.page(), args
}

// Total is SQL that counts the books of the list, and its parameters.
func (l *Listed) Total() (string, []any) { return l.query.total, l.query.totalArgs }

func (w Wanted) scope() (scope, error) {
	where, args, err := Condition(w.Condition, fields)
	return scope{library: w.Library, series: w.Series, where: where, args: args, find: w.Find}, err
}
