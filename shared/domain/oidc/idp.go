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

// Durations.
const (
	known   = time.Hour        // cache lifetime of a provider's metadata and keys
	request = 10 * time.Second // timeout of one request to it
	whole   = 25 * time.Second // timeout of all requests of one sign-in: in the cloud the api has 30 s
)

// maxKnown is the maximum number of cached providers.
const maxKnown = 500

// algorithms are the accepted signature algorithms of ID tokens: symmetric ones prove nothing.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// discovery caches the metadata of providers.
type discovery struct {
	web    *plug.Client
	asking turns

	mu    sync.Mutex
	known map[source]found
}

// source is a cache key: tenants share nothing, not even this.
type source struct {
	tenant uuid.UUID
	issuer string
}

type found struct {
	*oidc.Provider
	style oauth2.AuthStyle
	keys  string // address of its keys
	until time.Time
}

// client returns a client for a provider that uses the function plugin. The operator has configured the issuer, so only
// its host may have a private address.
func (d *discovery) client(issuer string) (*http.Client, error) {
	at, err := url.Parse(issuer)
	if err != nil {
		return nil, err
	}
	return &http.Client{Timeout: request, Transport: plug.Transport{Client: d.web, Trusted: func(u *url.URL) bool {
		return u.Scheme == at.Scheme && strings.EqualFold(u.Host, at.Host)
	}}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// of returns the metadata of a provider, fetched once an hour, by one request at a time. The returned context is the
// one for requests to the provider. The error is an *away if it did not respond properly.
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
		if d.remembered(key) != nil { // another request was first
			return nil
		}
		return d.ask(ctx, key)
	}); err != nil {
		return ctx, nil, err
	}
	f := d.remembered(key)
	if f == nil { // the cache is full
		return ctx, nil, &away{errors.New("the cache of provider configurations is full"), time.Now().Add(time.Second)}
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

// said validates the addresses in a provider's metadata, and returns how clients authenticate, and where its keys are.
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
			return 0, "", fmt.Errorf("the provider's %s must be an https address (http only if the issuer uses http), is %.200q", name, address)
		}
	}
	if len(m.Methods) > 0 && !slices.Contains(m.Methods, "client_secret_basic") && slices.Contains(m.Methods, "client_secret_post") {
		return oauth2.AuthStyleInParams, m.Keys, nil
	}
	return oauth2.AuthStyleInHeader, m.Keys, nil
}

// config returns the OAuth client of this server at a provider.
func (f *found) config(p *Provider, secret, callback string) *oauth2.Config {
	endpoint := f.Endpoint()
	endpoint.AuthStyle = f.style
	if secret == "" {
		endpoint.AuthStyle = oauth2.AuthStyleInParams // there is only the client id
	}
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: secret, Endpoint: endpoint, RedirectURL: callback, Scopes: p.Scopes}
}

// told is an error that may contain a provider's response: the log gets only the beginning.
type told struct{ error }

const maxTold = 1000 // bytes

func (t told) Error() string { return cut.Brief(fault.Line(t.error.Error()), maxTold) }

func (t told) Unwrap() error { return t.error }

// redeem exchanges a code for the user's identity; the response is fully verified.
func (f *found) redeem(ctx context.Context, c *oauth2.Config, p *Provider, code string, k kept) (*identity, error) {
	token, err := c.Exchange(ctx, code, oauth2.VerifierOption(k.verifier()))
	if err != nil {
		return nil, fmt.Errorf("exchange code: %w", err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, errors.New("the token endpoint sent no ID token")
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
		return nil, errors.New("the ID token has the wrong nonce")
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
			return nil, errors.New("userinfo has another subject than the ID token")
		}
		var more claims
		if err := info.Claims(&more); err != nil {
			return nil, fmt.Errorf("userinfo: %w", err)
		}
		all.add(more)
	}
	return all.identity(p, id.Subject)
}
