package sharing_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

func (r *rig) group(admin *testkit.Client, name string, members ...*testkit.Client) (path string) {
	r.t.Helper()
	path = base + "/access-groups/" + admin.Do("POST", base+"/access-groups", map[string]any{"name": name}).Want(201).Map()["id"].(string)
	for _, m := range members {
		admin.Do("POST", path+"/members", map[string]any{"userIds": []string{m.ID.String()}}).Want(200)
	}
	return path
}

// said returns the grants in a response: tags, modes, and origins.
func said(r *testkit.Response) string {
	r.Want(200)
	var m struct {
		Grants []struct {
			SharingTagName, AccessMode string
			Sources                    []struct {
				Kind      string
				GroupName *string
			}
		}
	}
	r.JSON(&m)
	var out []string
	for _, g := range m.Grants {
		text := g.SharingTagName + " " + g.AccessMode
		for _, s := range g.Sources {
			if text += " " + s.Kind; s.GroupName != nil {
				text += ":" + *s.GroupName
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// Grants of one user or group do not appear for another, and removing one does not affect the others.
func TestWhoseGrants(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.User(t, "one", "admin")
	ann, bob := r.User(t, "one", "reader"), r.User(t, "one", "reader")
	// Now the order of names differs from that of ids.
	r.DB.Exec(t, "update account set username = 'ann' where id = $1", bob.ID)
	r.DB.Exec(t, "update account set username = 'Zoe' where id = $1", ann.ID)
	kids, adult := r.tag(admin, "Kids"), r.tag(admin, "adult")
	of := func(u *testkit.Client) string { return base + "/users/" + u.ID.String() }
	admin.Do("PUT", of(ann)+"/sharing-tags", grant(kids, "deny")).Want(200)
	admin.Do("PUT", of(ann)+"/sharing-tags", grant(adult, "deny")).Want(200)
	admin.Do("PUT", of(bob)+"/sharing-tags", grant(kids, "deny")).Want(200)
	family, friends, school := r.group(admin, "family", ann), r.group(admin, "Friends", bob, ann), r.group(admin, "School", bob)
	admin.Do("POST", family+"/grants", grant(kids, "deny")).Want(200)
	admin.Do("POST", friends+"/grants", grant(kids, "deny")).Want(200)
	admin.Do("POST", school+"/grants", grant(adult, "allow")).Want(200)
	is := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	is("Ann's", said(admin.Do("GET", of(ann)+"/sharing-tags", nil)), "adult deny, Kids deny")
	is("Bob's", said(admin.Do("GET", of(bob)+"/sharing-tags", nil)), "Kids deny")
	is("Bob's own", said(bob.Do("GET", base+"/user/sharing-tags", nil)), "Kids deny")
	is("the admin's own", said(admin.Do("GET", base+"/user/sharing-tags", nil)), "")
	is("what counts for Ann", said(admin.Do("GET", of(ann)+"/effective-grants", nil)), "adult deny direct, Kids deny direct group:family group:Friends")
	is("what counts for Bob", said(admin.Do("GET", of(bob)+"/effective-grants", nil)), "adult allow group:School, Kids deny direct group:Friends")
	is("what counts for the admin", said(admin.Do("GET", of(admin)+"/effective-grants", nil)), "")
	is("Ann's groups", titles(admin.Do("GET", of(ann)+"/access-groups", nil)), "family Friends of 2")
	is("the admin's groups", titles(admin.Do("GET", of(admin)+"/access-groups", nil)), " of 0")
	is("of the family", said(admin.Do("GET", family, nil)), "Kids deny")
	is("of the school", said(admin.Do("GET", school, nil)), "adult allow")
	if got := admin.Do("GET", base+"/admin/sharing-tags/"+kids, nil).Want(200).Map(); got["userCount"] != 2.0 {
		t.Errorf("users, and not groups, of a tag: %v", got["userCount"])
	}
	members := func(group string) (out string) {
		t.Helper()
		for _, m := range admin.Do("GET", group, nil).Want(200).Map()["members"].([]any) {
			out += m.(map[string]any)["username"].(string) + " "
		}
		return out
	}
	is("members by name", members(friends), "ann Zoe ")

	// Removed from one, it stays with the others.
	admin.Do("DELETE", of(ann)+"/sharing-tags/"+kids, nil).Want(204)
	is("what is left to Ann", said(admin.Do("GET", of(ann)+"/sharing-tags", nil)), "adult deny")
	is("what is left to Bob", said(admin.Do("GET", of(bob)+"/sharing-tags", nil)), "Kids deny")
	is("what counts for Ann now", said(admin.Do("GET", of(ann)+"/effective-grants", nil)), "adult deny direct, Kids deny group:family group:Friends")
	admin.Do("DELETE", family+"/grants/"+kids, nil).Want(204)
	is("what is left to the friends", said(admin.Do("GET", friends, nil)), "Kids deny")
	admin.Do("DELETE", friends+"/members/"+ann.ID.String(), nil).Want(204)
	is("who is left of the friends", members(friends), "ann ")
	is("who is left of the family", members(family), "Zoe ")
	is("Ann's groups now", titles(admin.Do("GET", of(ann)+"/access-groups", nil)), "family of 1")
}

// Each change of visibility is published once; changes without effect are not.
func TestEachChangeIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, u := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	_, of := r.library(r.One, "A")
	kids, more := r.tag(admin, "Kids"), r.tag(admin, "More")
	group, other := r.group(admin, "Family"), r.group(admin, "Friends")
	user, series := base+"/users/"+u.ID.String(), base+"/series/"+of["A"]+"/sharing-tags"
	if n := r.bumps.Load(); n != 0 {
		t.Errorf("told %d times of tags and groups that nobody has", n)
	}
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		told         int32
	}{
		{"PUT", user + "/sharing-tags", grant(kids, "deny"), 200, 1},
		{"PUT", user + "/sharing-tags", grant(uuid.NewString(), "deny"), 404, 0},
		{"DELETE", user + "/sharing-tags/" + kids, nil, 204, 1},
		{"DELETE", user + "/sharing-tags/" + kids, nil, 404, 0},
		{"POST", group + "/grants", grant(kids, "deny"), 200, 1},
		{"POST", group + "/members", map[string]any{"userIds": []string{u.ID.String()}}, 200, 1},
		{"POST", group + "/members", map[string]any{"userIds": []string{uuid.NewString()}}, 404, 0},
		{"DELETE", group + "/members/" + u.ID.String(), nil, 204, 1},
		{"DELETE", group + "/members/" + u.ID.String(), nil, 404, 0},
		{"DELETE", group + "/grants/" + kids, nil, 204, 1},
		{"DELETE", group + "/grants/" + kids, nil, 404, 0},
		{"DELETE", other, nil, 204, 1},
		{"DELETE", other, nil, 404, 0},
		{"POST", series, map[string]any{"sharingTagId": kids}, 200, 1},
		{"PUT", series, map[string]any{"sharingTagIds": []string{kids, more}}, 200, 1},
		{"DELETE", series + "/" + more, nil, 204, 1},
		{"DELETE", series + "/" + more, nil, 404, 0},
		{"DELETE", base + "/admin/sharing-tags/" + kids, nil, 204, 1},
		{"DELETE", base + "/admin/sharing-tags/" + kids, nil, 404, 0},
	} {
		before := r.bumps.Load()
		admin.Do(c.method, c.path, c.body).Want(c.status)
		if n := r.bumps.Load() - before; n != c.told {
			t.Errorf("%s %s: told %d times, want %d", c.method, c.path, n, c.told)
		}
	}
}

// An administrator who adds a member that came from an identity provider makes the membership manual: it stays.
func TestMembersBecomeManual(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, u := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	group := r.group(admin, "Family")
	r.DB.Exec(t, "insert into access_group_member (tenant_id, group_id, account_id, source, provider_id) select tenant_id, id, $1, 'oidc', gen_random_uuid() from access_group", u.ID)
	source := func() any {
		return admin.Do("GET", group, nil).Want(200).Map()["members"].([]any)[0].(map[string]any)["source"]
	}
	if source() != "oidc" {
		t.Errorf("at first: %v", source())
	}
	admin.Do("POST", group+"/members", map[string]any{"userIds": []string{u.ID.String()}}).Want(200)
	if source() != "manual" {
		t.Errorf("added by hand: %v", source())
	}
}

// Concurrent additions are serialized, so the limit holds.
func TestBoundsHoldAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.User(t, "one", "admin")
	group := r.group(admin, "Family")
	while := func(lock, fill, path string, body any) int {
		t.Helper()
		ctx := context.Background()
		tx, err := r.DB.Owner.Pool().Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(ctx)
		for _, sql := range []string{lock, fill} {
			if _, err := tx.Exec(ctx, strings.ReplaceAll(sql, "TENANT", "'"+r.One.String()+"'::uuid")); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan *testkit.Response, 1)
		go func() { done <- admin.Do("POST", path, body) }()
		r.DB.AwaitLock(t)
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		return (<-done).Status
	}
	for table, path := range map[string]string{"sharing_tag": "/admin/sharing-tags", "access_group": "/access-groups"} {
		if status := while(fmt.Sprintf("select pg_advisory_xact_lock(hashtextextended('%s' || TENANT, 0))", table),
			fmt.Sprintf("insert into %s (tenant_id, id, name) select TENANT, gen_random_uuid(), 'n' || n from generate_series(1, 1000) n", table),
			base+path, map[string]any{"name": "One more"}); status != 409 {
			t.Errorf("%s: status %d", table, status)
		}
	}
	if status := while("select from access_group where name = 'Family' for no key update",
		"insert into access_group_oidc_mapping (tenant_id, id, group_id, oidc_group_name) select g.tenant_id, gen_random_uuid(), g.id, 'n' || n from access_group g, generate_series(1, 100) n where g.name = 'Family'",
		group+"/oidc-mappings", map[string]any{"oidcGroupName": "one more"}); status != 409 {
		t.Errorf("mappings: status %d", status)
	}
	mappings := admin.Do("GET", group, nil).Want(200).Map()["oidcMappings"].([]any)
	if len(mappings) != 100 || mappings[1].(map[string]any)["oidcGroupName"] != "n10" {
		t.Errorf("%d mappings, the second is %v", len(mappings), mappings[1])
	}
}
