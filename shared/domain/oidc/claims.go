package oidc

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/platform/auth"
)

// claims are what a provider says of somebody.
type claims map[string]any

// identity is what counts of it.
type identity struct {
	subject  string
	username string
	email    string
	verified bool     // the address is theirs
	groups   []string // nil: the provider says nothing of them, and that counts for nothing
}

// find is a claim by its name, or by a path with dots where claims hold others (realm_access.roles).
func (c claims) find(name string) (value any, there bool) {
	if v, ok := c[name]; ok {
		return v, true
	}
	first, rest, nested := strings.Cut(name, ".")
	if inner, ok := c[first].(map[string]any); ok && nested {
		return claims(inner).find(rest)
	}
	return nil, false
}

func (c claims) get(name string) any { v, _ := c.find(name); return v }

func (c claims) text(name string) string { s, _ := c.get(name).(string); return s }

// lack tells whether the ID token leaves out what the userinfo endpoint may tell.
func (c claims) lack(p *Provider) bool {
	return c.get(p.EmailClaim) == nil || c.get(p.UsernameClaim) == nil || p.GroupsClaim != "" && c.get(p.GroupsClaim) == nil
}

// add takes over what is not there yet. The address and whether it is verified belong together.
func (c claims) add(more claims) {
	more = maps.Clone(more)
	if _, ok := c["email"]; ok {
		delete(more, "email_verified")
	} else {
		delete(c, "email_verified")
	}
	for name, value := range more {
		if _, ok := c[name]; !ok {
			c[name] = value
		}
	}
}

func (c claims) identity(p *Provider, subject string) (*identity, error) {
	if !printable(subject, 1, 255) {
		return nil, errors.New("the subject is empty, longer than 255 characters, or no text")
	}
	out := &identity{subject: subject, username: c.text(p.UsernameClaim), email: strings.TrimSpace(c.text(p.EmailClaim))}
	verified := c["email_verified"]
	// What is verified is the claim email, no other.
	out.verified = (verified == true || verified == "true") && out.email != "" && out.email == strings.TrimSpace(c.text("email"))
	if p.GroupsClaim != "" {
		if value, there := c.find(p.GroupsClaim); there || p.MissingGroups != groupsKeep {
			out.groups = names(value)
		}
	}
	return out, nil
}

// names are the groups of a claim: a list, or one alone. What no group can be called is left out.
func names(value any) []string {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	out := []string{}
	for _, v := range list {
		if s, ok := v.(string); ok && s != "" && len(s) <= 2000 && utf8.ValidString(s) && !strings.ContainsRune(s, 0) {
			out = append(out, s)
		}
	}
	return out
}

// role is that of somebody in these groups; "" where groups say nothing of roles, or the provider nothing of groups.
func (p *Provider) role(groups []string) string {
	if groups == nil || len(p.AdminGroups)+len(p.MaintainerGroups)+len(p.ReaderGroups) == 0 {
		return ""
	}
	for _, m := range []struct {
		role   string
		groups []string
	}{{auth.Admin, p.AdminGroups}, {auth.Maintainer, p.MaintainerGroups}, {auth.Reader, p.ReaderGroups}} {
		if slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(m.groups, g) }) {
			return m.role
		}
	}
	return p.DefaultRole
}
