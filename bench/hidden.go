package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// hidden measures lists for users who do not see all series: one is denied a tag of every tenth series, one is allowed
// a tag of every hundredth. The baseline is the administrator, who sees everything.
func (s *system) hidden(ctx context.Context, out *report, c *crowd, base string) error {
	for _, u := range []struct {
		name, mode string
		every      int
	}{{"denied a tenth", "deny", 10}, {"allowed a hundredth", "allow", 100}, {"allowed ten series", "allow", 9700}} {
		user, tag := uuid.New(), uuid.New()
		for _, sql := range []string{
			"insert into account (tenant_id, id, username, email, password_hash, role) values ($1, $2, $3::uuid::text, $3::uuid::text, '', 'reader')",
			"insert into sharing_tag (tenant_id, id, name) select $1, $3, $2::uuid::text",
			"insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $3, $2, '" + u.mode + "')",
			fmt.Sprintf(`insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) select $1, id, $3 from (
				select id, row_number() over (order by id) as n from series where tenant_id = $1) s where n %% %d = 0 and $2::uuid is not null`, u.every),
		} {
			if _, err := s.admin.Exec(ctx, sql, c.tenant, user, tag); err != nil {
				return fmt.Errorf("%s: %w", u.name, err)
			}
		}
		if _, err := s.admin.Exec(ctx, "analyze series_sharing_tag, sharing_grant"); err != nil {
			return err
		}
		token, err := s.sign(c.tenant, user)
		if err != nil {
			return err
		}
		some := newClient(token)
		some.host = c.client.host
		for _, route := range []string{"books?pageSize=50", "series?pageSize=50", "series?pageSize=50&libraryId=%s",
			"books?pageSize=50&page=1000", "libraries", "genres", "books/on-deck",
			"/series/list"} {
			ask := func(by *client) func() error {
				if route == "/series/list" {
					return func() error {
						return by.call(ctx, http.MethodPost, base+"series/list", object{"fullTextSearch": "saga 42"}, nil)
					}
				}
				return by.get(ctx, base+c.fill(route))
			}
			some, all, err := alternating(20, ask(some), ask(c.client))
			if err != nil {
				return fmt.Errorf("%s, %s: %w", u.name, route, err)
			}
			out.ratio(u.name+", "+strings.ReplaceAll(route, "%s", "…"), some, all, 0)
		}
	}
	return nil
}
