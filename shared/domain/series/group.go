package series

import (
	"context"
	"fmt"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Group is the number of series in a list whose titles begin with the same character.
type Group struct {
	Group string `json:"group" db:"name" doc:"First character in lower case; digits and symbols stay unchanged"`
	Count int64  `json:"count" db:"count" minimum:"1"`
}

// groups registers the list of the first characters of the titles in a list.
func groups(a *httpapi.API, d *db.DB) {
	httpapi.Register(a, operation("POST", "/list/alphabetical-groups", "groupSeries",
		"Count the series that meet a condition by the first character of their sort title", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			httpapi.Paging
			Body struct{ book.ListBody }
		}) (*httpapi.Page[Group], error) {
			s, err := conditioned(in.Body.Condition, in.Body.Find())
			if err != nil {
				return nil, err
			}
			from, args := s.from()
			all, err := db.List[Group](ctx, d, "select lower(left(s.title_sort, 1)) as name, count(*) as count "+from+" group by 1 order by 1", args...)
			if err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, all), nil
		})
}

// from is SQL for the series s of the scope, including the search if there is one, and its parameters.
func (s scope) from() (string, []any) {
	where, args := s.sql()
	if s.find == nil {
		return "from series s where " + where, args
	}
	args = append(args, *s.find, s.library)
	return fmt.Sprintf(`from app.find('series', $%d, $%d, null, false) f cross join lateral (
	  select * from series x where x.tenant_id = app.tenant() and x.id = f.id limit 1) s where `, len(args)-1, len(args)) + where, args
}
