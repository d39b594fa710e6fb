package series

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// ListQuery selects and orders series for another interface.
type ListQuery struct {
	Library   *uuid.UUID      // limits the list to this library
	Condition json.RawMessage // as POST /series/list takes it
	Also      json.RawMessage // another condition that must hold, with limits of its own
	Find      *string         // the search text for titles, normalized by naming.Normalize
	Sort      httpapi.Sorting
}

// Listed is a list of series that another package renders in its own way.
type Listed struct{ query query }

// List returns the list that w describes; an invalid condition or order is a BadRequest.
func List(w ListQuery) (*Listed, error) {
	s, err := conditioned(w.Condition, w.Find)
	if err != nil {
		return nil, err
	}
	s.library = cmp.Or(w.Library, s.library)
	where, args, err := book.Condition(w.Also, fields, len(s.args)+1)
	if err != nil {
		return nil, err
	}
	s.args = append(s.args, args...)
	if s.where == "" {
		s.where = where
	} else if where != "" {
		s.where += " and " + where
	}
	field, desc, err := s.order(w.Sort)
	if err != nil {
		return nil, err
	}
	return &Listed{all(s, field, desc)}, nil
}

// Selected returns a list from SQL: ids selects the ids in order, total counts them; both take args.
func Selected(ids, total string, args ...any) *Listed {
	return &Listed{query{ids: ids, total: total, args: args, totalArgs: args}}
}

// Queue adds a page and the total of the list to the batch; load returns both after the batch has run.
func (l *Listed) Queue(b *pgx.Batch, limit, offset int) (load func() ([]Series, int64)) {
	return l.query.queue(b, limit, offset)
}

// Reordered returns the list in another order: join joins the ids l.id with the table that orders them; $n in it stands
// for arg.
func (l *Listed) Reordered(join string, arg any) *Listed {
	q := l.query
	q.args = append(append([]any{}, q.args...), arg)
	q.ids = "select l.id from (" + q.ids + ") l " + strings.ReplaceAll(join, "$n", fmt.Sprintf("$%d", len(q.args)))
	return &Listed{q}
}

// Page returns SQL for the ids of a page in order, and its parameters.
func (l *Listed) Page(limit, offset int) (string, []any) {
	return l.query.page(), append(append([]any{}, l.query.args...), limit, offset)
}

// Total returns SQL for the number of series, and its parameters.
func (l *Listed) Total() (string, []any) { return l.query.total, l.query.totalArgs }
