package account_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/auth"
)

func basicOf(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

func TestRegister(t *testing.T) {
	t.Parallel()
	s := serve(t)
	anyone := s.Anonymous(t, "one")
	anyone.Do("POST", "/api/v1/auth/register", newUser("ann")).Want(403)
	s.set(t, setting.RegistrationEnabled, "true")
	r := anyone.Do("POST", "/api/v1/auth/register", newUser("ann")).Want(201)
	if got := keys(t, r); got != "accessToken expiresIn message tokenType user" {
		t.Errorf("register response has %s", got)
	}
	if n := s.count(t, "select count(*) from refresh_token"); n != 0 {
		t.Errorf("%d refresh tokens that nobody was given", n)
	}
	me := bearer(anyone, r.Map()["accessToken"].(string)).Do("GET", "/api/v1/auth/me", nil).Want(200).Map()
	if me["role"] != "reader" || me["username"] != "ann" || me["emailVerified"] != true {
		t.Errorf("me: %v", me)
	}
	anyone.Do("POST", "/api/v1/auth/register", newUser("ANN")).Want(409)
	field(t, anyone.Do("POST", "/api/v1/auth/register", `{"username":"x","email":"x@y.zz","password":"short"}`).Want(400), "password")
	field(t, anyone.Do("POST", "/api/v1/auth/register", `{"username":"x","password":"longer than eight"}`).Want(400), "email")
	admin := newUser("eve")
	admin["role"], admin["permissions"] = "admin", []string{"SystemAdmin"}
	if u := anyone.Do("POST", "/api/v1/auth/register", admin).Want(201).Map()["user"].(map[string]any); u["role"] != "reader" || len(u["permissions"].([]any)) != 0 {
		t.Errorf("registered as %v", u)
	}
	s.Anonymous(t, "two").Do("POST", "/api/v1/auth/register", newUser("ann")).Want(403)
	if len(s.sent()) != 0 {
		t.Errorf("mails: %v", s.sent())
	}
}

// The link in the mail opens a page that may only run its own script, and does not contain the token.
func TestConfirmPage(t *testing.T) {
	t.Parallel()
	s := serve(t)
	r := s.Anonymous(t, "one").Do("GET", "/verify-email?token=%3Cb%3Etoken", nil).Want(200)
	page := string(r.Body)
	_, script, _ := strings.Cut(page, "<script>")
	script, _, _ = strings.Cut(script, "</script>")
	hash := sha256.Sum256([]byte(script))
	if p := r.Header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") ||
		!strings.Contains(p, "script-src 'sha256-"+base64.StdEncoding.EncodeToString(hash[:])+"'") {
		t.Errorf("the policy lets the script not run: %s", p)
	}
	if c := r.Header.Get("Content-Type"); c != "text/html; charset=utf-8" || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", r.Header)
	}
	if !strings.Contains(script, "fetch('api/v1/auth/verify-email', {method: 'POST'") || strings.Contains(page, "<b>") {
		t.Errorf("page: %s", page)
	}
}

var link = regexp.MustCompile(`https://one\.example\.org/verify-email\?token=(\S+)`)

func TestConfirmEmail(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.set(t, setting.RegistrationEnabled, "true")
	s.set(t, setting.ConfirmEmail, "true")
	anyone := s.Anonymous(t, "one")
	verify := func(token string) int {
		return anyone.Do("POST", "/api/v1/auth/verify-email", map[string]string{"token": token}).Status
	}
	resend := func(email string) string {
		t.Helper()
		began := time.Now()
		defer func() {
			if took := time.Since(began); took < account.Evenly {
				t.Errorf("after %s it is known that no mail was sent to %s", took, email)
			}
		}()
		return anyone.Do("POST", "/api/v1/auth/resend-verification", map[string]string{"email": email}).Want(200).Map()["message"].(string)
	}
	lastToken := func() string {
		t.Helper()
		mails := s.sent()
		m := link.FindStringSubmatch(mails[len(mails)-1].Text)
		if m == nil {
			t.Fatalf("no link in %q", mails[len(mails)-1].Text)
		}
		token, err := url.QueryUnescape(m[1])
		if err != nil {
			t.Fatal(err)
		}
		return token
	}

	r := anyone.Do("POST", "/api/v1/auth/register", newUser("ann")).Want(201)
	if m := r.Map(); m["accessToken"] != nil || m["tokenType"] != nil || m["expiresIn"] != nil || r.Header.Get("Set-Cookie") != "" {
		t.Fatalf("signed in without confirming: %v", m)
	}
	if got := keys(t, r); got != "accessToken expiresIn message tokenType user" {
		t.Errorf("register response has %s", got)
	}
	credentials := map[string]string{"username": "ann", "password": "longer than eight"}
	anyone.Do("POST", "/api/v1/auth/login", credentials).Want(401)
	if to := s.sent()[0].To; to != "ann@example.org" {
		t.Errorf("mail to %s", to)
	}
	old := lastToken()
	s.lasts(t, "verification_token", "24 hours")

	// A second mail replaces the first; at most one is sent per minute; the response never reveals who is known.
	known := resend("ANN@example.org")
	if len(s.sent()) != 1 {
		t.Error("a second mail within a minute")
	}
	s.exec(t, "update verification_token set created_at = now() - interval '2 minutes', expires_at = now()")
	for range 2 {
		if resend("ANN@example.org") != known || len(s.sent()) != 2 {
			t.Errorf("mails: %v", s.sent())
		}
	}
	s.lasts(t, "verification_token", "24 hours")
	if resend("nobody@example.org") != known || len(s.sent()) != 2 {
		t.Error("an unknown address is told apart")
	}
	field(t, anyone.Do("POST", "/api/v1/auth/resend-verification", `{"email":"x"}`).Want(400), "email")

	token := lastToken()
	s.exec(t, "update verification_token set created_at = now() - interval '2 minutes'")
	s.broken.Store(true)
	if resend("ann@example.org") != known {
		t.Error("a known address is told apart where no mail can be sent")
	}
	s.broken.Store(false)
	s.exec(t, "update verification_token set hash = $1", auth.HashSecret(token))
	if got := []int{verify(old), verify("unknown")}; got[0] != 400 || got[1] != 400 {
		t.Errorf("old and unknown token: %v", got)
	}
	s.Anonymous(t, "two").Do("POST", "/api/v1/auth/verify-email", map[string]string{"token": token}).Want(400)
	r = anyone.Do("POST", "/api/v1/auth/verify-email", map[string]string{"token": token}).Want(200)
	if got := keys(t, r); got != "accessToken expiresIn message tokenType user" {
		t.Errorf("verify response has %s", got)
	}
	if u := r.Map()["user"].(map[string]any); u["emailVerified"] != true {
		t.Errorf("user: %v", u)
	}
	if verify(token) != 400 {
		t.Error("a token works twice")
	}
	anyone.Do("POST", "/api/v1/auth/login", credentials).Want(200)
	if resend("ann@example.org") != known || len(s.sent()) != 2 {
		t.Error("a confirmed address got a mail")
	}

	// A mail to an old address of the user confirms nothing.
	id := anyone.Do("POST", "/api/v1/auth/register", newUser("typo")).Want(201).Map()["user"].(map[string]any)["id"].(string)
	admin, mistaken := s.User(t, "one", "admin"), lastToken()
	admin.Do("PATCH", "/api/v1/users/"+id, `{"email":"right@example.org"}`).Want(200)
	if verify(mistaken) != 400 {
		t.Error("the mail to an address confirmed another one")
	}
	resend("right@example.org")
	if again := s.sent()[len(s.sent())-1].To; again != "right@example.org" || verify(lastToken()) != 200 {
		t.Errorf("the new address cannot be confirmed: the last mail went to %s", again)
	}

	// A token expires, and an administrator's decision stands.
	anyone.Do("POST", "/api/v1/auth/register", newUser("late")).Want(201)
	late := lastToken()
	s.exec(t, "update verification_token set expires_at = now()")
	if verify(late) != 400 {
		t.Error("an old token works")
	}
	id = anyone.Do("POST", "/api/v1/auth/register", newUser("evil")).Want(201).Map()["user"].(map[string]any)["id"].(string)
	admin.Do("PATCH", "/api/v1/users/"+id, `{"isActive":false}`).Want(200)
	if verify(lastToken()) != 400 {
		t.Error("a user whom an administrator disabled came back by mail")
	}
	if n := len(s.sent()); resend("evil@example.org") != known || len(s.sent()) != n {
		t.Error("a user whom an administrator disabled got a mail")
	}
}
