package oidc_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/oidc"
	"github.com/longbox/longbox/shared/platform/fault"
)

// The secret is sent as the provider requires, and nowhere else; without a secret the client id suffices.
func TestHowTheClientShowsItsSecret(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, c := range map[string]struct {
		methods []string
		public  bool
		post    bool
	}{
		"nothing said":     {},
		"header":           {methods: []string{"private_key_jwt", "client_secret_basic"}},
		"both":             {methods: []string{"client_secret_post", "client_secret_basic"}},
		"form":             {methods: []string{"client_secret_post"}, post: true},
		"neither":          {methods: []string{"private_key_jwt"}},
		"public":           {methods: []string{"client_secret_basic"}, public: true, post: true},
		"public, not said": {public: true, post: true},
	} {
		r.idp = newIDP(t)
		r.idp.says(object{"sub": "1", "email": "ann@example.org", "email_verified": true, "preferred_username": "ann"})
		if c.methods != nil {
			r.idp.metadata = object{"token_endpoint_auth_methods_supported": c.methods}
		}
		r.idp.post = c.post
		r.DB.Exec(t, "delete from account where email = 'ann@example.org'")
		r.set(r.One, nil)
		if c.public {
			r.idp.secret = ""
			p := oidc.Provider{Name: "id", Issuer: r.idp.URL, ClientID: clientID, CreateUsers: true, Enabled: true}
			if _, err := oidc.Set(r.In(r.One), r.DB.System, r.key, p, oidc.Secret{None: true}); err != nil {
				t.Fatal(err)
			}
		}
		if location := r.browser("one").signIn(); !strings.HasPrefix(location, "/login/oidc/complete#") {
			t.Errorf("%s: %s", name, location)
		}
	}
	b := r.browser("one")
	back := r.idp.authorize(b.begin(nil))
	r.idp.mu.Lock()
	r.idp.answer = func(w http.ResponseWriter, path string) bool {
		w.Header().Set("Location", r.idp.URL+"/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
		return true
	}
	r.idp.mu.Unlock()
	if b.refused("sent elsewhere", b.back(back), "/login", "server_error", "answer is not valid"); r.asked("/elsewhere") != 0 {
		t.Error("the secret was sent elsewhere")
	}
}

// Claims in the ID token are not requested again; missing ones are.
func TestWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.idp.metadata = object{"userinfo_endpoint": r.idp.URL + "/userinfo"}
	r.set(r.One, func(p *oidc.Provider) { p.MaintainerGroups = []string{"staff"} })
	for i, lacks := range []string{"email", "preferred_username", "groups", ""} {
		subject := fmt.Sprint("s", i)
		all := object{"email": subject + "@example.org", "email_verified": "true", "preferred_username": subject, "groups": "staff"}
		token, info := object{"sub": subject}, object{"sub": subject}
		for name, value := range all {
			if info[name] = value; name != lacks && (name != "email_verified" || lacks != "email") {
				token[name] = value
			}
		}
		token["iat"] = time.Now().Add(4 * time.Minute).Unix() // the provider's clock is ahead
		r.idp.says(token)
		r.idp.mu.Lock()
		r.idp.info = info
		r.idp.mu.Unlock()
		before := r.asked("/userinfo")
		s := r.session(r.browser("one").signIn(), "/login/oidc/complete")
		if s.User.Email != subject+"@example.org" || !s.User.EmailVerified || s.User.Username != subject || s.User.Role != "maintainer" {
			t.Errorf("without %q: %+v", lacks, s.User)
		}
		if asked := r.asked("/userinfo") - before; asked != 1 && lacks != "" || asked != 0 && lacks == "" {
			t.Errorf("without %q: asked %d times", lacks, asked)
		}
	}
}

// The operator's changes take effect at once, in one tenant: pending sign-ins must start over, and a disabled provider
// is not offered.
func TestProvidersAreTheTenants(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.User(t, "two", "reader") // set up
	r.set(r.Two, nil)
	b, other := r.browser("one"), r.browser("two")
	back, theirs := r.idp.authorize(b.begin(nil)), r.idp.authorize(other.begin(nil))
	r.set(r.One, nil)
	b.refused("changed meanwhile", b.back(back), "/login", "invalid_state", "Start again")
	r.session(other.back(theirs), "/login/oidc/complete")
	r.set(r.One, func(p *oidc.Provider) { p.Enabled = false })
	if m := b.do("GET", at+"providers", nil).Want(200).Map(); m["enabled"] != false || len(m["providers"].([]any)) != 0 {
		t.Errorf("of a disabled provider: %v", m)
	}
	for n := range 19 {
		r.set(r.One, func(p *oidc.Provider) { p.Name = fmt.Sprint("p", n) })
	}
	if _, err := oidc.Set(r.In(r.One), r.DB.System, r.key, oidc.Provider{Name: "more", Issuer: r.idp.URL, ClientID: "x"}, oidc.Secret{None: true}); !fault.Is(err, fault.Conflict) {
		t.Errorf("one more: %v", err)
	}
	r.set(r.One, nil) // one of them
	if err := oidc.Remove(r.In(r.One), r.DB.System, "id"); err != nil {
		t.Fatal(err)
	}
	if mine, all := r.count("select count(*) from oidc_provider where tenant_id = $1", r.One), r.count("select count(*) from oidc_provider"); mine != 19 || all != 20 {
		t.Errorf("%d of %d are left", mine, all)
	}
	if err := oidc.Remove(r.In(r.One), r.DB.System, "id"); !fault.Is(err, fault.NotFound) {
		t.Errorf("twice: %v", err)
	}
}
