package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/google/uuid"
	"golang.org/x/oauth2"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/plug"
)

// How long things last.
const (
	known   = time.Hour        // what a provider says of itself, and its keys
	request = 10 * time.Second // one request to it
	whole   = 25 * time.Second // all requests of one sign-in: in the cloud the api has 30 s
)

// maxKnown bounds what is remembered of providers.
const maxKnown = 500

// algorithms are those that ID tokens may be signed with: a secret that both sides know proves nothing.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// discovery remembers what providers say of themselves.
type discovery struct {
	web    *plug.Client
	asking turns

	mu    sync.Mutex
	known map[source]found
}

// source is who says something: tenants share nothing, not even this.
type source struct {
	tenant uuid.UUID
	issuer string
}

type found struct {
	*oidc.Provider
	style oauth2.AuthStyle
	keys  string // where its keys are
	until time.Time
}

// client asks a provider, by the function plugin. What the operator has configured is the issuer: its host alone may
// have a private address.
func (d *discovery) client(issuer string) (*http.Client, error) {
	at, err := url.Parse(issuer)
	if err != nil {
		return nil, err
	}
	return &http.Client{Timeout: request, Transport: plug.Transport{Client: d.web, Trusted: func(u *url.URL) bool {
		return u.Scheme == at.Scheme && strings.EqualFold(u.Host, at.Host)
	}}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// of is what a provider says of itself, asked once an hour, by one at a time. The context that comes back is the one to
// ask it with. The error is an *away where it did not answer as it should.
func (d *discovery) of(ctx context.Context, tenant uuid.UUID, issuer string) (context.Context, *found, error) {
	client, err := d.client(issuer)
	if err != nil {
		return ctx, nil, err
	}
	ctx = oidc.ClientContext(ctx, client)
	key := source{tenant, issuer}
	if f := d.remembered(key); f != nil {
		return ctx, f, nil
	}
	if err := d.asking.take(ctx, key, func(ctx context.Context) error {
		if d.remembered(key) != nil { // another was faster
			return nil
		}
		return d.ask(ctx, key)
	}); err != nil {
		return ctx, nil, err
	}
	f := d.remembered(key)
	if f == nil { // too many are known
		return ctx, nil, &away{errors.New("what the provider says of itself was forgotten at once"), time.Now().Add(time.Second)}
	}
	return ctx, f, nil
}

func (d *discovery) remembered(key source) *found {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f, ok := d.known[key]; ok && time.Now().Before(f.until) {
		return &f
	}
	return nil
}

func (d *discovery) ask(ctx context.Context, key source) error {
	p, err := oidc.NewProvider(ctx, key.issuer)
	if err != nil {
		return err
	}
	f := found{Provider: p, until: time.Now().Add(known)}
	if f.style, f.keys, err = said(p, key.issuer); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxKnown {
		clear(d.known)
	}
	d.known[key] = f
	return nil
}

// said checks the addresses that a provider names, and finds how clients show their secret to it, and where its keys
// are.
func said(p *oidc.Provider, issuer string) (style oauth2.AuthStyle, keys string, err error) {
	var m struct {
		Authorization string   `json:"authorization_endpoint"`
		Token         string   `json:"token_endpoint"`
		Keys          string   `json:"jwks_uri"`
		UserInfo      string   `json:"userinfo_endpoint"`
		Methods       []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := p.Claims(&m); err != nil {
		return 0, "", err
	}
	for name, address := range map[string]string{"authorization_endpoint": m.Authorization, "token_endpoint": m.Token, "jwks_uri": m.Keys, "userinfo_endpoint": m.UserInfo} {
		if name == "userinfo_endpoint" && address == "" {
			continue
		}
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || strings.HasPrefix(issuer, "https:")) {
			return 0, "", fmt.Errorf("its %s is %.200q", name, address)
		}
	}
	if len(m.Methods) > 0 && !slices.Contains(m.Methods, "client_secret_basic") && slices.Contains(m.Methods, "client_secret_post") {
		return oauth2.AuthStyleInParams, m.Keys, nil
	}
	return oauth2.AuthStyleInHeader, m.Keys, nil
}

// config is the client that this server is at a provider.
func (f *found) config(p *Provider, secret, callback string) *oauth2.Config {
	endpoint := f.Endpoint()
	if endpoint.AuthStyle = f.style; secret == "" {
		endpoint.AuthStyle = oauth2.AuthStyleInParams // there is but the id
	}
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: secret, Endpoint: endpoint, RedirectURL: callback, Scopes: p.Scopes}
}

// told is an error that may hold an answer of a provider: a log gets no more than the beginning.
type told struct{ error }

const maxTold = 1000 // bytes

func (t told) Error() string { return cut.Brief(fault.Line(t.error.Error()), maxTold) }

func (t told) Unwrap() error { return t.error }

// redeem trades a code for who has signed in; the answer is checked in every way.
func (f *found) redeem(ctx context.Context, c *oauth2.Config, p *Provider, code string, k kept) (*identity, error) {
	token, err := c.Exchange(ctx, code, oauth2.VerifierOption(k.verifier()))
	if err != nil {
		return nil, fmt.Errorf("exchange of the code: %w", err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, errors.New("the token endpoint gave no ID token")
	}
	id, err := f.Verifier(&oidc.Config{ClientID: p.ClientID, SupportedSigningAlgs: algorithms}).Verify(ctx, raw)
	if err != nil {
		return nil, err
	}
	var all claims
	if err := id.Claims(&all); err != nil {
		return nil, err
	}
	azp, named := all["azp"].(string)
	switch {
	case id.Nonce != k.nonce():
		return nil, errors.New("the ID token has another nonce")
	case (len(id.Audience) > 1 || named) && azp != p.ClientID:
		return nil, errors.New("the ID token was issued to another client")
	case id.IssuedAt.After(time.Now().Add(5 * time.Minute)):
		return nil, errors.New("the ID token was issued in the future")
	}
	if f.UserInfoEndpoint() != "" && all.lack(p) {
		info, err := f.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return nil, fmt.Errorf("userinfo: %w", err)
		}
		if info.Subject != id.Subject {
			return nil, errors.New("userinfo is about somebody else")
		}
		var more claims
		if err := info.Claims(&more); err != nil {
			return nil, fmt.Errorf("userinfo: %w", err)
		}
		all.add(more)
	}
	return all.identity(p, id.Subject)
}
