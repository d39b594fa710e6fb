package oidc_test

import (
	"context"
	"testing"

	"github.com/longbox/longbox/shared/domain/oidc"
)

// A sign-in changes only the user's own memberships, and group names are case-sensitive.
func TestOthersStayInTheirGroups(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.User(t, "one", "admin")
	group := "/api/v1/access-groups/" + admin.Do("POST", "/api/v1/access-groups", object{"name": "Kids"}).Want(201).Map()["id"].(string)
	admin.Do("POST", group+"/oidc-mappings", object{"oidcGroupName": "Small"}).Want(201)
	signIn := func(subject string, groups any) {
		t.Helper()
		r.idp.says(object{"sub": subject, "email": subject + "@example.org", "preferred_username": subject, "groups": groups})
		r.session(r.browser("one").signIn(), "/login/oidc/complete")
	}
	members := func() (out string) {
		t.Helper()
		if err := r.DB.Owner.Pool().QueryRow(context.Background(), `select coalesce(string_agg(a.username, ' ' order by a.username), '')
			from access_group_member m join account a on a.id = m.account_id`).Scan(&out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	signIn("ann", "Small")
	signIn("bob", "small") // another group
	if got := members(); got != "ann" {
		t.Errorf("members: %s", got)
	}
	signIn("bob", "Small")
	signIn("carl", nil)
	if got := members(); got != "ann bob" {
		t.Errorf("after others signed in: %s", got)
	}
	signIn("ann", nil)
	if got := members(); got != "bob" {
		t.Errorf("after one left: %s", got)
	}
}

// Who is in a group by two providers leaves it only when neither says so any more, whichever was first.
func TestGroupsOfTwoProviders(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.User(t, "one", "admin")
	group := "/api/v1/access-groups/" + admin.Do("POST", "/api/v1/access-groups", object{"name": "Kids"}).Want(201).Map()["id"].(string)
	admin.Do("POST", group+"/oidc-mappings", object{"oidcGroupName": "small"}).Want(201)
	signIn := func(provider string, groups ...string) {
		t.Helper()
		r.set(r.One, func(p *oidc.Provider) { p.Name = provider })
		r.idp.says(object{"sub": "ann", "email": "ann@example.org", "email_verified": true, "preferred_username": "ann", "groups": groups})
		b := r.browser("one")
		r.session(b.back(r.idp.authorize(b.do("POST", at+provider+"/login", nil).Want(200).Map()["redirectUrl"].(string))), "/login/oidc/complete")
	}
	is := func(what string, want int) {
		t.Helper()
		if got := r.count("select count(*) from access_group_member"); got != want {
			t.Errorf("%s: %d memberships, want %d", what, got, want)
		}
	}
	signIn("id", "small")
	signIn("other", "small")
	signIn("id")
	is("the first says no more, the second does", 1)
	signIn("other")
	is("neither says so", 0)
	signIn("other", "small")
	signIn("id", "small")
	signIn("id")
	is("the second says no more, the first does", 1)
	signIn("other")
	is("neither says so again", 0)
	signIn("id", "small")
	signIn("other", "small")
	r.DB.Exec(t, "update access_group_member set source = 'manual', provider_id = null")
	signIn("id")
	signIn("other")
	is("by hand", 1)
}
