package oidc_test

import (
	"context"
	"testing"
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
