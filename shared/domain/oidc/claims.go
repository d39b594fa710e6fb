package oidc

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/platform/auth"
)

// claims are a provider's claims about a user.
type claims map[string]any

// identity holds the claims that Longbox uses.
type identity struct {
	subject  string
	username string
	email    string
	verified bool     // the provider has verified the address
	groups   []string // nil: the claim is missing, and ignored
}

// find returns a claim by its name, or by a dotted path into nested claims (realm_access.roles).
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

// lack reports whether the ID token lacks claims that the userinfo endpoint may have.
func (c claims) lack(p *Provider) bool {
	return c.get(p.EmailClaim) == nil || c.get(p.UsernameClaim) == nil || p.GroupsClaim != "" && c.get(p.GroupsClaim) == nil
}

// add adds missing claims. The address and its verification belong together.
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
		return nil, errors.New("the subject is empty, longer than 255 characters, or not printable")
	}
	out := &identity{subject: subject, username: c.text(p.UsernameClaim), email: strings.TrimSpace(c.text(p.EmailClaim))}
	verified := c["email_verified"]
	// Only the claim email can be verified.
	out.verified = (verified == true || verified == "true") && out.email != "" && out.email == strings.TrimSpace(c.text("email"))
	if p.GroupsClaim != "" {
		if value, there := c.find(p.GroupsClaim); there || p.MissingGroups != groupsKeep {
			out.groups = names(value)
		}
	}
	return out, nil
}

// names returns the groups in a claim: a list, or a single one. Invalid names are ignored.
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

// role returns the role for these groups; "" if groups are not mapped to roles, or the provider sent none.
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
