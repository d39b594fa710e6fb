package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/plug"
)

// Bearer identifies users by access tokens of identity providers (RFC 6750, RFC 9068), if the operator has set the
// audience that they must have. The user must have signed in before: a token neither creates nor changes a user.
type Bearer struct {
	database *db.DB
	refresh  func(ctx context.Context, p *linked) (*keySet, error) // nil: providers cannot be reached from here
}

// NewBearer makes a Bearer that uses the keys that others have stored.
func NewBearer(d *db.DB) *Bearer { return &Bearer{database: d} }

// NewAskingBearer makes a Bearer that fetches the keys of providers through web, and stores them for others.
func NewAskingBearer(d *db.DB, web *plug.Client) *Bearer {
	a := &asker{database: d, known: discovery{web: web, known: map[source]found{}}}
	return &Bearer{d, a.fetch}
}

// maxBearer is the maximum size of an access token, in bytes.
const maxBearer = 16 << 10

// bearerAlgorithms are the accepted signature algorithms of access tokens.
var bearerAlgorithms = []string{oidc.RS256, oidc.ES256}

// head is the header of a token.
type head struct {
	Algorithm string `json:"alg"`
	Type      string `json:"typ"`
}

// Takes reports whether a credential has the form of such a token, without I/O.
func (*Bearer) Takes(token string) bool {
	var h head
	return len(token) <= maxBearer && strings.Count(token, ".") == 2 && part(token, 0, &h) == nil &&
		slices.Contains(bearerAlgorithms, h.Algorithm)
}

// part decodes a part of an unverified token.
func part(token string, n int, dst any) error {
	data, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[n])
	if err != nil {
		return err
	}
	return json.Unmarshal(data, dst)
}

// linked is a provider that may have issued a token, with its keys and the user with the token's subject.
type linked struct {
	ID         uuid.UUID       `db:"id"`
	Issuer     string          `db:"issuer"`
	Audience   string          `db:"bearer_audience"`
	Keys       json.RawMessage `db:"keys"`
	Age        *float64        `db:"age"` // of the keys, in seconds
	Account    *uuid.UUID      `db:"account_id"`
	Generation *int32          `db:"generation"`
	Active     *bool           `db:"is_active"`
}

// errBearer is the error for every rejected token; the reason goes to the log.
var errBearer = fault.New(fault.Unauthorized, "The credential is invalid or has expired; sign in again")

// Resolve returns the account of a token and its expiry. Unauthorized if the token is invalid, Unavailable if it cannot
// be verified now. Nothing is revealed before the signature is verified.
func (b *Bearer) Resolve(ctx context.Context, token string) (account uuid.UUID, generation int32, ends time.Time, err error) {
	refuse := func(why string) (uuid.UUID, int32, time.Time, error) {
		httpapi.Note(ctx, slog.String("oidc", fault.Line(why)))
		return uuid.Nil, 0, time.Time{}, errBearer
	}
	var said struct {
		Issuer  string `json:"iss"`
		Subject string `json:"sub"`
	}
	if err := part(token, 1, &said); err != nil || !printable(said.Issuer, 1, 500) || !printable(said.Subject, 1, 255) {
		return refuse("the access token has no issuer or no subject")
	}
	all, err := db.List[linked](ctx, b.database, `select p.id, p.issuer, p.bearer_audience, k.keys, extract(epoch from now() - k.fetched_at)::double precision as age,
		  a.id as account_id, a.generation, a.is_active
		from oidc_provider p
		left join oidc_keys k on k.tenant_id = p.tenant_id and k.provider_id = p.id and k.issuer = p.issuer
		left join oidc_identity i on i.tenant_id = p.tenant_id and i.provider_id = p.id and i.subject = $2
		left join account a on a.tenant_id = i.tenant_id and a.id = i.account_id
		where p.tenant_id = app.tenant() and p.issuer = $1 and p.enabled and p.bearer_audience <> '' order by p.name`, said.Issuer, said.Subject)
	if err != nil {
		return uuid.Nil, 0, time.Time{}, err
	}
	why := "the access token is not from a provider whose tokens are accepted"
	for i := range all {
		p := &all[i]
		checked, wrong, err := b.check(ctx, p, token)
		switch {
		case err != nil:
			return uuid.Nil, 0, time.Time{}, err
		case wrong != nil:
			why = "access token: " + told{wrong}.Error()
		case checked.Subject != said.Subject:
			why = "the access token has two subjects"
		case p.Account == nil:
			why = "the user of the access token has never signed in here"
		case !*p.Active:
			why = "the user of the access token is disabled"
		default:
			return *p.Account, *p.Generation, checked.Expiry, nil
		}
	}
	return refuse(why)
}

// check verifies a token completely; wrong says what is invalid, err that it cannot be verified now.
func (b *Bearer) check(ctx context.Context, p *linked, token string) (checked *oidc.IDToken, wrong, err error) {
	keys, err := b.keys(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	verify := func() {
		checked, wrong = oidc.NewVerifier(p.Issuer, keys, &oidc.Config{ClientID: p.Audience, SupportedSigningAlgs: bearerAlgorithms}).Verify(ctx, token)
	}
	if verify(); keys.unknown && p.age() >= keysYoung {
		if keys, err = b.fetch(ctx, p); err != nil {
			return nil, nil, err
		}
		verify()
	}
	if wrong != nil {
		return nil, wrong, nil
	}
	return checked, access(token, checked), nil
}

// access rejects tokens that are not plain access tokens: ID, refresh and logout tokens, and sender-constrained tokens.
func access(token string, checked *oidc.IDToken) error {
	var h head
	if err := part(token, 0, &h); err != nil {
		return err
	}
	switch strings.ToLower(h.Type) {
	case "", "jwt", "at+jwt", "application/at+jwt":
	default:
		return errors.New("it has the wrong type: " + h.Type)
	}
	var c claims
	if err := checked.Claims(&c); err != nil {
		return err
	}
	for _, name := range []string{"at_hash", "c_hash", "events", "cnf"} {
		if _, there := c.find(name); there {
			return errors.New("it has the claim " + name + ", which plain access tokens do not have")
		}
	}
	typ := c.text("typ")
	// ID tokens contain the nonce of the sign-in. An access token with a nonce must declare its type.
	if _, there := c.find("nonce"); there && typ == "" && !strings.HasSuffix(strings.ToLower(h.Type), "at+jwt") {
		return errors.New("it has the claim nonce and is not marked as an access token")
	}
	if typ != "" && !strings.EqualFold(typ, "Bearer") { // Keycloak distinguishes its tokens by this claim
		return errors.New("it has the wrong type: " + typ)
	}
	if checked.IssuedAt.After(time.Now().Add(5 * time.Minute)) {
		return errors.New("it was issued in the future")
	}
	return nil
}
