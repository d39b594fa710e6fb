package oidc_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

type object = map[string]any

// The provider's key, which it publishes, and a foreign one.
var own, foreign = newKey(), newKey()

func newKey() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

// publicPEM is the provider's public key as a text that everybody knows.
func publicPEM(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&own.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// idp is a small identity provider.
type idp struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	user     object                                        // claims of the user
	sign     func(t *testing.T, all object) string         // overrides the signing of the ID token
	info     object                                        // response of the userinfo endpoint
	metadata object                                        // additional metadata
	secret   string                                        // of the client
	post     bool                                          // the secret is expected in the form
	grants   map[string]grant                              // by code
	asked    map[string]int                                // by path
	answer   func(w http.ResponseWriter, path string) bool // overrides responses
}

type grant struct{ nonce, challenge, redirect string }

const (
	clientID     = "longbox"
	clientSecret = "a secret: of the client"
)

func newIDP(t *testing.T) *idp {
	t.Helper()
	p := &idp{t: t, secret: clientSecret, grants: map[string]grant{}, asked: map[string]int{}}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *idp) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[r.URL.Path]++
	if p.answer != nil && p.answer(w, r.URL.Path) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	reply := func(status int, v any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		m := object{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}}
		maps.Copy(m, p.metadata)
		reply(200, m)
	case "/keys":
		reply(200, object{"keys": []object{{"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256", "n": base64.RawURLEncoding.EncodeToString(own.N.Bytes()),
			"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(own.E)).Bytes())}}})
	case "/token":
		id, secret, basic := r.BasicAuth()
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
		if !basic {
			id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
		}
		g, ok := p.grants[r.PostFormValue("code")]
		delete(p.grants, r.PostFormValue("code"))
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if !ok || basic == p.post || id != clientID || secret != p.secret || r.PostFormValue("redirect_uri") != g.redirect || base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge {
			reply(400, object{"error": "invalid_grant"})
			return
		}
		all := object{"iss": p.URL, "aud": clientID, "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(), "nonce": g.nonce}
		maps.Copy(all, p.user)
		sign := p.sign
		if sign == nil {
			sign = signed
		}
		answer := object{"access_token": "access", "token_type": "Bearer", "expires_in": 60}
		if token := sign(p.t, all); token != "" {
			answer["id_token"] = token
		}
		reply(200, answer)
	case "/userinfo":
		if r.Header.Get("Authorization") != "Bearer access" {
			reply(401, object{})
			return
		}
		reply(200, p.info)
	default:
		http.NotFound(w, r)
	}
}

// signed returns a valid ID token.
func signed(t *testing.T, all object) string { return token(t, jwt.SigningMethodRS256, own, all) }

func token(t *testing.T, method jwt.SigningMethod, key any, all object) string {
	t.Helper()
	j := jwt.NewWithClaims(method, jwt.MapClaims(all))
	j.Header["kid"] = "k"
	out, err := j.SignedString(key)
	if err != nil {
		t.Error(err)
	}
	return out
}

// says sets the claims of the user.
func (p *idp) says(user object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.user, p.sign, p.info = user, nil, nil
}

// authorize signs in at the provider, and returns the address to which the browser is redirected.
func (p *idp) authorize(address string) *url.URL {
	p.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	q := u.Query()
	if q.Get("client_id") != clientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 ||
		len(q.Get("state")) < 40 || len(q.Get("nonce")) < 40 || q.Get("scope") != "openid profile email" {
		p.t.Fatalf("%s", address)
	}
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		p.t.Fatal(err)
	}
	code := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grants[code] = grant{q.Get("nonce"), q.Get("code_challenge"), q.Get("redirect_uri")}
	back.RawQuery = url.Values{"code": {code}, "state": {q.Get("state")}, "session_state": {"x"}, "iss": {p.URL}}.Encode()
	return back
}
