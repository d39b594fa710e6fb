package oidc_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/longbox/longbox/shared/domain/oidc"
	"github.com/longbox/longbox/shared/testkit"
)

const audience = "longbox-api"

// bearing is a rig whose provider's access tokens are accepted, with a user "1" who has signed in before.
func bearing(t *testing.T) (*rig, oidc.Session) {
	t.Helper()
	r := newRig(t)
	r.set(r.One, func(p *oidc.Provider) { p.BearerAudience = audience })
	return r, r.session(r.browser("one").signIn(), "/login/oidc/complete")
}

// access returns the claims of an access token with changes; null removes a claim.
func (r *rig) access(changes object) object {
	all := object{"iss": r.idp.URL, "aud": []string{"account", audience}, "sub": "1", "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(),
		"azp": "an app", "typ": "Bearer", "jti": rand.Text()} // unique: a token that was seen is cached
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

func (r *rig) me(token string) *testkit.Response {
	r.t.Helper()
	return bearer(r.Anonymous(r.t, "one"), token).Do("GET", "/api/v1/auth/me", nil)
}

// aged makes the stored keys that old.
func (r *rig) aged(by string) {
	r.t.Helper()
	r.DB.Exec(r.t, "update oidc_keys set fetched_at = now() - $1::interval, asked_at = now() - $1::interval", by)
}

func (r *rig) asked(path string) int {
	r.idp.mu.Lock()
	defer r.idp.mu.Unlock()
	return r.idp.asked[path]
}

// A user who has signed in before is identified by an access token of the provider.
func TestAccessTokens(t *testing.T) {
	t.Parallel()
	r, ann := bearing(t)
	first := signed(t, r.access(nil))
	for range 3 {
		if m := r.me(first).Want(200).Map(); m["id"] != ann.User.ID.String() {
			t.Errorf("%v", m)
		}
	}
	r.me(signed(t, r.access(object{"aud": audience, "typ": nil, "iat": nil}))).Want(200)
	if n := r.asked("/keys"); n != 2 { // one is from the sign-in
		t.Errorf("the keys were asked for %d times", n)
	}
	// A process that cannot reach the provider uses the stored keys.
	other := r.Beside(t, r.routes)
	other.Identity.External = oidc.NewBearer(r.DB.App)
	bearer(r.Anonymous(t, "one").At(other), signed(t, r.access(nil))).Do("GET", "/api/v1/auth/me", nil).Want(200)
	r.aged("25 hours")
	if res := bearer(r.Anonymous(t, "one").At(other), signed(t, r.access(nil))).Do("GET", "/api/v1/auth/me", nil).Want(503); res.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	r.me(signed(t, r.access(nil))).Want(200)
	if n := r.asked("/keys"); n != 3 {
		t.Errorf("the keys were asked for %d times", n)
	}
	// It is valid in no other tenant, and is no session: the cookie does not accept it.
	bearer(r.Anonymous(t, "two"), signed(t, r.access(nil))).Do("GET", "/api/v1/auth/me", nil).Want(401)
	r.me(first).Want(200)
	for _, text := range []string{signed(t, r.access(nil)), first} { // not even one that is cached as a bearer token
		cookie := r.Anonymous(t, "one")
		cookie.Header.Set("Cookie", "auth_token="+text)
		cookie.Do("GET", "/api/v1/auth/me", nil).Want(401)
		password := r.Anonymous(t, "one")
		password.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(":"+text)))
		password.Do("GET", "/api/v1/auth/me", nil).Want(401)
	}
	// A disabled or deleted user, or one whose provider was removed, is no longer identified.
	r.DB.Exec(t, "update account set is_active = false, generation = generation + 1 where id = $1", ann.User.ID)
	r.me(first).Want(401)
	r.me(signed(t, r.access(nil))).Want(401)
	r.DB.Exec(t, "update account set is_active = true where id = $1", ann.User.ID)
	r.me(signed(t, r.access(nil))).Want(200)
	for name, change := range map[string]func(*oidc.Provider){"disabled": func(p *oidc.Provider) { p.Enabled, p.BearerAudience = false, audience },
		"tokens are not taken": nil, "another audience": func(p *oidc.Provider) { p.BearerAudience = "another" }} {
		r.set(r.One, change)
		if res := r.me(signed(t, r.access(nil))); res.Status != 401 {
			t.Errorf("%s: %d", name, res.Status)
		}
	}
}

// An invalid token identifies nobody, and creates nobody.
func TestForgedAccessTokens(t *testing.T) {
	t.Parallel()
	r, _ := bearing(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	forged := map[string]string{
		"alg none":                  token(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, r.access(nil)),
		"HS256 with the public key": token(t, jwt.SigningMethodHS256, publicPEM(t), r.access(nil)),
		"RS512":                     token(t, jwt.SigningMethodRS512, own, r.access(nil)),
		"PS256":                     token(t, jwt.SigningMethodPS256, own, r.access(nil)),
		"another key":               token(t, jwt.SigningMethodRS256, foreign, r.access(nil)),
		"another kind of key":       token(t, jwt.SigningMethodES256, curve, r.access(nil)),
		"no parts":                  "a.b.c",
		"claims are no object":      strings.Split(signed(t, r.access(nil)), ".")[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`[1]`)) + ".c",
		"no signature":              strings.TrimRight(signed(t, r.access(nil)), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"),
	}
	parts := strings.Split(signed(t, r.access(object{"sub": "2"})), ".")
	parts[1] = strings.Split(signed(t, r.access(nil)), ".")[1]
	forged["changed afterwards"] = strings.Join(parts, ".")
	for name, changes := range map[string]object{
		"another audience": {"aud": clientID}, "no audience": {"aud": nil}, "another issuer": {"iss": "https://id.example.org"}, "no issuer": {"iss": nil},
		"issuer with NUL": {"iss": "a\x00"}, "expired": {"exp": time.Now().Add(-time.Second).Unix()}, "never expires": {"exp": nil}, "not yet": {"nbf": time.Now().Add(time.Hour).Unix()},
		"of the future": {"iat": time.Now().Add(time.Hour).Unix()}, "no subject": {"sub": nil}, "subject with NUL": {"sub": "1\x00"}, "no text": {"sub": 1},
		"somebody who has never signed in": {"sub": "2"}, "an ID token": {"at_hash": "x"}, "an ID token without a hash": {"nonce": "x", "typ": nil}, "Keycloak's ID token": {"typ": "ID"}, "a logout token": {"events": object{}},
		"bound to a key": {"cnf": object{"jkt": "x"}}, "an ID token with a hash of the code": {"c_hash": "x"},
		"larger than 16 KiB": {"padding": strings.Repeat("x", 16<<10)},
	} {
		forged[name] = signed(t, r.access(changes))
	}
	typed := func(typ string, changes object) string {
		j := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims(r.access(changes)))
		j.Header["kid"], j.Header["typ"] = "k", typ
		out, err := j.SignedString(own)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, typ := range []string{"logout+jwt", "dpop+jwt", "secevent+jwt"} {
		forged[typ] = typed(typ, nil)
	}
	for name, text := range map[string]string{"says what it is": typed("AT+jwt", object{"nonce": "x", "typ": nil}), "of Keycloak": typed("JWT", object{"typ": "bearer"}),
		"almost 16 KiB":            signed(t, r.access(object{"padding": strings.Repeat("x", 11<<10)})),
		"of a clock that is ahead": signed(t, r.access(object{"iat": time.Now().Add(4 * time.Minute).Unix()}))} {
		if res := r.me(text); res.Status != 200 {
			t.Errorf("%s: %d %s", name, res.Status, res.Body)
		}
	}
	for name, text := range forged {
		if res := r.me(text); res.Status != 401 || strings.Contains(string(res.Body), "oidc") {
			t.Errorf("%s: %d %s", name, res.Status, res.Body)
		}
	}
	if n := r.count("select count(*) from account") + r.count("select count(*) from oidc_identity"); n != 3 {
		t.Errorf("%d rows, want those of one new user", n)
	}
	r.me(signed(t, r.access(nil))).Want(200)
	// A key counts only for the algorithm that the provider names.
	r.DB.Exec(t, `update oidc_keys set keys = jsonb_set(keys, '{keys,0,alg}', '"ES256"')`)
	r.me(signed(t, r.access(nil))).Want(401)
}

// A provider that rotates its keys is asked again, but not for made-up key ids; a failing one delays nobody whose keys
// are stored.
func TestKeysChange(t *testing.T) {
	t.Parallel()
	r, _ := bearing(t)
	r.me(signed(t, r.access(nil))).Want(200)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	another := func() string {
		j := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims(r.access(nil)))
		j.Header["kid"], j.Header["typ"] = "new", "at+jwt"
		out, err := j.SignedString(curve)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	coordinate := func(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.FillBytes(make([]byte, 32))) }
	point, err := curve.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	x, y := coordinate(new(big.Int).SetBytes(point[1:33])), coordinate(new(big.Int).SetBytes(point[33:]))
	weak := bytes.Repeat([]byte{0xff}, 128) // 1024 bits
	r.idp.mu.Lock()
	r.idp.answer = func(w http.ResponseWriter, path string) bool {
		if path != "/keys" {
			return false
		}
		keys := []object{{"kty": "EC", "crv": "P-256", "kid": "new", "x": x, "y": y}, {"kty": "oct", "kid": "shared", "k": "AAAA"}, {"kty": "odd"},
			{"kty": "EC", "crv": "P-256", "kid": "enc", "use": "enc", "x": x, "y": y}, {"kty": "EC", "crv": "P-256", "kid": "alg", "alg": "ES512", "x": x, "y": y},
			{"kty": "EC", "crv": "P-256", "kid": "a\x00", "x": x, "y": y}, {"kty": "EC", "crv": "P-256", "kid": "long", "alg": strings.Repeat("a", 400_000), "x": x, "y": y},
			{"kty": "RSA", "kid": "weak", "n": base64.RawURLEncoding.EncodeToString(weak), "e": "AQAB"}}
		if err := json.NewEncoder(w).Encode(object{"keys": keys}); err != nil {
			t.Error(err)
		}
		return true
	}
	r.idp.mu.Unlock()
	r.me(another()).Want(401) // was just asked
	before := r.asked("/keys")
	r.aged("2 minutes")
	r.me(another()).Want(200)
	r.me(signed(t, r.access(nil))).Want(401) // revoked
	if n := r.asked("/keys"); n != before+1 {
		t.Errorf("asked %d times", n-before)
	}
	if n := r.count("select jsonb_array_length(keys -> 'keys') from oidc_keys"); n != 1 {
		t.Errorf("%d keys are kept, want the one that is public", n)
	}
	r.idp.mu.Lock()
	r.idp.answer = func(w http.ResponseWriter, path string) bool { w.WriteHeader(500); return true }
	r.idp.mu.Unlock()
	r.aged("2 hours")
	r.me(another()).Want(200)
	// It is unknown whether the provider has that key.
	if res := r.me(signed(t, r.access(nil))).Want(503); res.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	before = r.asked("/keys")
	r.me(another()).Want(200)
	if n := r.asked("/keys"); n != before {
		t.Error("a provider that has just failed is asked again")
	}
	r.aged("25 hours")
	r.me(another()).Want(503)
	// If the operator changes the issuer, the old keys no longer count.
	r.DB.Exec(t, "update oidc_keys set fetched_at = now()")
	r.me(another()).Want(200)
	text := another()
	r.DB.Exec(t, "update oidc_keys set issuer = 'https://id.example.org'")
	r.me(text).Want(503)
}

// However many processes get unknown key ids, one of them asks the provider, once.
func TestOneProgramAsksForKeys(t *testing.T) {
	t.Parallel()
	r, _ := bearing(t)
	r.me(signed(t, r.access(nil))).Want(200)
	other := r.Beside(t, r.routes)
	other.Identity.External = r.asking()
	unknown := func() string {
		j := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims(r.access(nil)))
		j.Header["kid"] = rand.Text()
		out, err := j.SignedString(foreign)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	there := func(text string) *testkit.Response {
		t.Helper()
		return bearer(r.Anonymous(t, "one").At(other), text).Do("GET", "/api/v1/auth/me", nil)
	}
	there(signed(t, r.access(nil))).Want(200)
	release, goOn := context.WithCancel(context.Background())
	defer goOn()
	r.idp.mu.Lock()
	r.idp.answer = func(_ http.ResponseWriter, path string) bool {
		r.idp.mu.Unlock()
		if path == "/keys" {
			<-release.Done()
		}
		r.idp.mu.Lock()
		return false
	}
	r.idp.mu.Unlock()
	r.aged("2 minutes")
	before := r.asked("/keys")
	var wait sync.WaitGroup
	for range 3 {
		text := unknown()
		wait.Go(func() {
			if res := r.me(text); res.Status != 401 {
				t.Errorf("%d %s", res.Status, res.Body)
			}
		})
	}
	testkit.Eventually(t, 30*time.Second, func() bool { return r.asked("/keys") > before })
	for range 2 {
		if res := there(unknown()).Want(503); res.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	there(signed(t, r.access(nil))).Want(200) // by a known key
	goOn()
	wait.Wait()
	there(unknown()).Want(401)
	r.me(unknown()).Want(401)
	if n := r.asked("/keys") - before; n != 1 {
		t.Errorf("asked %d times", n)
	}
	// A process that read old keys just before they were refreshed does not ask again.
	r.DB.Exec(t, "update oidc_keys set fetched_at = now() - interval '2 minutes', asked_at = now() - interval '20 seconds'")
	r.me(unknown()).Want(503)
	if n := r.asked("/keys") - before; n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// A sign-in at a provider that has just failed fails at once; of concurrent ones, one asks.
func TestProviderFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser("one")
	release, hang := context.WithCancel(context.Background())
	r.idp.mu.Lock()
	r.idp.answer = func(w http.ResponseWriter, path string) bool {
		r.idp.mu.Unlock()
		<-release.Done()
		r.idp.mu.Lock()
		w.WriteHeader(500)
		return true
	}
	r.idp.mu.Unlock()
	const well = "/.well-known/openid-configuration"
	var wait sync.WaitGroup
	for range 3 {
		other := r.browser("one")
		wait.Go(func() {
			if res := other.do("POST", at+"id/login", nil); res.Status != 503 || res.Header.Get("Retry-After") == "" {
				t.Errorf("%d %s", res.Status, res.Body)
			}
		})
	}
	testkit.Eventually(t, 30*time.Second, func() bool { return r.asked(well) > 0 })
	hang()
	wait.Wait()
	r.idp.mu.Lock()
	r.idp.answer = nil
	r.idp.mu.Unlock()
	res := b.do("POST", at+"id/login", nil).Want(503)
	if !strings.Contains(string(res.Body), "try again in") || res.Header.Get("Retry-After") == "" || r.asked(well) != 1 {
		t.Errorf("%s %v, asked %d times", res.Body, res.Header, r.asked(well))
	}
	// Other tenants and other providers are not affected.
	r.idp = newIDP(t)
	r.set(r.One, nil)
	b.do("POST", at+"id/login", nil).Want(200)
}
