package series

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Wanted says which series another interface shows, and in which order.
type Wanted struct {
	Library   *uuid.UUID      // only of this one
	Condition json.RawMessage // as POST /series/list takes it
	Find      *string         // what titles are searched for, as naming.Normalize writes it
	Sort      httpapi.Sorting
}

// Listed is a list of series that another package shows in its own way.
type Listed struct{ query query }

// List is the list of series that is wanted; BadRequest for a condition or an order that there is not.
func List(w Wanted) (*Listed, error) {
	where, args, err := book.Condition(w.Condition, fields)
	if err != nil {
		return nil, err
	}
	s := scope{library: w.Library, where: where, args: args, find: w.Find}
	field, desc, err := s.order(w.Sort)
	if err != nil {
		return nil, err
	}
	return &Listed{all(s, field, desc)}, nil
}

// Selected is a list that another package selects: ids of series in order and their number, both of args.
func Selected(ids, total string, args ...any) *Listed {
	return &Listed{query{ids: ids, total: total, args: args, totalArgs: args}}
}

// Queue asks for a page and the total of the list as this package shows it; load has both, once the batch has run.
func (l *Listed) Queue(b *pgx.Batch, limit, offset int) (load func() ([]Series, int64)) {
	return l.query.queue(b, limit, offset)
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
	return l.query.page(), append(append([]any{}, l.query.args...), limit, offset)
}

// Total is SQL that counts the series of the list, and its parameters.
func (l *Listed) Total() (string, []any) { return l.query.total, l.query.totalArgs }
