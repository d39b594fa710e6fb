package account

import (
	netmail "net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Limits of a user's fields.
const (
	maxUsername = 64   // characters
	maxEmail    = 254  // bytes (RFC 5321)
	MinPassword = 8    // characters
	maxPassword = 1024 // bytes
)

// Registration is a user to create; Check trims and validates it.
type Registration struct {
	Username string
	Email    string
	Password string
}

// composed returns a name as it is stored and compared: trimmed and in NFC.
func composed(name string) string { return norm.NFC.String(strings.TrimSpace(name)) }

// Check trims the names and validates every field.
func (n *Registration) Check() []fault.Field {
	n.Username, n.Email = composed(n.Username), composed(n.Email)
	return append(checkNames(n.Username, n.Email, ""), checkPassword(n.Password)...)
}

// LocalAddress is an e-mail address at localhost.localdomain for a user who needs none.
func LocalAddress(username string) string {
	n := Registration{Username: username, Email: strings.TrimSpace(username) + "@localhost.localdomain", Password: "not checked"}
	if len(n.Check()) > 0 { // a name that no address can hold
		return "admin@localhost.localdomain"
	}
	return n.Email
}

// checkNames lists what is wrong with names; was is the user name until now.
func checkNames(username, email, was string) []fault.Field {
	var bad []fault.Field
	switch n := utf8.RuneCountInString(username); {
	case n == 0:
		bad = append(bad, fault.Field{Field: "username", Message: "is required"})
	case n > maxUsername:
		bad = append(bad, fault.Field{Field: "username", Message: "must be at most 64 characters"})
	case !utf8.ValidString(username) || strings.ContainsFunc(username, func(r rune) bool { return !unicode.IsPrint(r) }):
		bad = append(bad, fault.Field{Field: "username", Message: "must not contain control or invisible characters"})
	case strings.Contains(username, ":") && username != was:
		bad = append(bad, fault.Field{Field: "username", Message: "must not contain a colon: HTTP Basic separates user name and password with it"})
	case strings.Contains(username, "@") && !same(username, email):
		// Users sign in by user name or e-mail address: a user name must not be somebody else's address.
		bad = append(bad, fault.Field{Field: "username", Message: "may be an e-mail address only if it is the user's own"})
	}
	if msg := emailFault(email); msg != "" {
		bad = append(bad, fault.Field{Field: "email", Message: msg})
	}
	return bad
}

// same compares names as the database does. (strings.EqualFold treats ſ as s.)
func same(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a == b
}

func emailFault(email string) string {
	if email == "" {
		return "is required"
	}
	if len(email) > maxEmail {
		return "must be at most 254 bytes"
	}
	const shape = "must be an e-mail address like name@example.org"
	a, err := netmail.ParseAddress(email)
	if err != nil || a.Address != email || strings.ContainsFunc(email, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }) {
		return shape
	}
	_, domain, _ := strings.Cut(email, "@")
	if !strings.Contains(strings.Trim(domain, "."), ".") {
		return shape
	}
	return ""
}

func checkPassword(password string) []fault.Field {
	switch {
	case utf8.RuneCountInString(password) < MinPassword:
		return []fault.Field{{Field: "password", Message: "must be at least 8 characters"}}
	case len(password) > maxPassword:
		return []fault.Field{{Field: "password", Message: "must be at most 1024 bytes"}}
	}
	return nil
}

func checkRole(role string) []fault.Field {
	if !auth.IsRole(role) {
		return []fault.Field{{Field: "role", Message: "must be reader, maintainer or admin"}}
	}
	return nil
}

// checkRank refuses a caller without SystemAdmin who would grant a permission that they lack, or change a user who has
// one. It also refuses a caller from whom sharing tags hide something, which another user could show them.
func checkRank(c *auth.Caller, role string, extra []string) error {
	if c.May(auth.SystemAdmin) {
		return nil
	}
	if c.Limited {
		return fault.New(fault.Forbidden, "You cannot create or change users, because they could see what sharing tags hide from you; ask an administrator")
	}
	for _, p := range append(auth.RolePermissions(role), extra...) {
		if !c.May(p) {
			return fault.New(fault.Forbidden, "You cannot create or change a user with a permission that you do not have: %s", p)
		}
	}
	return nil
}
