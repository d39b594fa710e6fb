package oidc

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/lazyregexp"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/seal"
)

// Provider is an identity provider of a tenant, as the operator configures it.
type Provider struct {
	ID               uuid.UUID `json:"-" db:"id"`
	Name             string    `json:"name" db:"name"`
	DisplayName      string    `json:"displayName" db:"display_name"`
	Issuer           string    `json:"issuer" db:"issuer"`
	ClientID         string    `json:"clientId" db:"client_id"`
	HasSecret        bool      `json:"hasSecret" db:"has_secret"`
	Scopes           []string  `json:"scopes" db:"scopes"`
	AdminGroups      []string  `json:"adminGroups" db:"admin_groups"`
	MaintainerGroups []string  `json:"maintainerGroups" db:"maintainer_groups"`
	ReaderGroups     []string  `json:"readerGroups" db:"reader_groups"`
	GroupsClaim      string    `json:"groupsClaim" db:"groups_claim"` // "": groups are not used
	MissingGroups    string    `json:"missingGroups" db:"missing_groups"`
	UsernameClaim    string    `json:"usernameClaim" db:"username_claim"`
	EmailClaim       string    `json:"emailClaim" db:"email_claim"`
	CreateUsers      bool      `json:"createUsers" db:"create_users"`
	DefaultRole      string    `json:"defaultRole" db:"default_role"`
	RedirectURIs     []string  `json:"redirectUris" db:"redirect_uris"`
	// Audience of accepted access tokens. If empty, none are accepted.
	BearerAudience string    `json:"bearerAudience" db:"bearer_audience"`
	Enabled        bool      `json:"enabled" db:"enabled"`
	CreatedAt      time.Time `json:"createdAt" db:"created_at"`
	UpdatedAt      time.Time `json:"updatedAt" db:"updated_at"`
}

const columns = `id, name, display_name, issuer, client_id, client_secret is not null as has_secret, scopes, admin_groups, maintainer_groups, reader_groups,
	groups_claim, missing_groups, username_claim, email_claim, create_users, default_role, redirect_uris, bearer_audience, enabled, created_at, updated_at`

// What a missing groups claim means: groups stay as they are, or the user is in none, so that nobody keeps groups they
// have lost.
const (
	groupsKeep = "keep"
	groupsNone = "none"
)

// secretive is a Provider with its encrypted secret.
type secretive struct {
	Provider
	Secret []byte `db:"client_secret"`
}

// Limits per tenant.
const (
	maxProviders = 20
	maxSecret    = 4096 // bytes
)

// owner is the context to which an encrypted secret is bound.
func owner(tenant, id uuid.UUID) string { return tenant.String() + "/oidc/" + id.String() }

var nameShape = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// check fills in what may be left out, and lists what is wrong.
func (p *Provider) check() error {
	if !nameShape.MatchString(p.Name) {
		return fault.Invalid("provider", "must be 1 to 32 lower-case letters, digits and hyphens, beginning and ending with a letter or digit")
	}
	var bad []fault.Field
	wrong := func(field, message string) { bad = append(bad, fault.Field{Field: field, Message: message}) }
	p.DisplayName = cmp.Or(p.DisplayName, p.Name)
	p.UsernameClaim = cmp.Or(p.UsernameClaim, "preferred_username")
	p.EmailClaim = cmp.Or(p.EmailClaim, "email")
	p.DefaultRole = cmp.Or(p.DefaultRole, auth.Reader)
	p.MissingGroups = cmp.Or(p.MissingGroups, groupsNone)
	if len(p.Scopes) == 0 {
		p.Scopes = []string{"openid", "profile", "email"}
	}
	if u, err := url.Parse(p.Issuer); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || strings.ContainsAny(p.Issuer, "?#") || len(p.Issuer) > 500 {
		wrong("issuer", "must be the provider's own issuer address, such as https://id.example.org/realms/books")
	}
	for _, c := range []struct {
		field, text string
		most        int
	}{{"displayName", p.DisplayName, 100}, {"clientId", p.ClientID, 500}, {"usernameClaim", p.UsernameClaim, 100}, {"emailClaim", p.EmailClaim, 100}} {
		if !printable(c.text, 1, c.most) {
			wrong(c.field, "must be 1 to 100 printable characters (clientId: 1 to 500)")
		}
	}
	if !printable(p.GroupsClaim, 0, 200) {
		wrong("groupsClaim", "must be at most 200 printable characters")
	}
	if p.MissingGroups != groupsKeep && p.MissingGroups != groupsNone {
		wrong("missingGroups", "must be keep or none")
	}
	if !printable(p.BearerAudience, 0, 500) {
		wrong("bearerAudience", "must be at most 500 printable characters")
	}
	if !auth.IsRole(p.DefaultRole) {
		wrong("defaultRole", "must be reader, maintainer or admin")
	}
	if !slices.Contains(p.Scopes, "openid") || len(p.Scopes) > 20 || slices.ContainsFunc(p.Scopes, func(s string) bool { return !printable(s, 1, 100) || strings.Contains(s, " ") }) {
		wrong("scopes", "must be at most 20 words, including openid")
	}
	for field, groups := range map[string][]string{"adminGroups": p.AdminGroups, "maintainerGroups": p.MaintainerGroups, "readerGroups": p.ReaderGroups} {
		switch {
		case len(groups) > 100 || slices.ContainsFunc(groups, func(g string) bool { return !printable(g, 1, 500) }):
			wrong(field, "must be at most 100 group names")
		case len(groups) > 0 && p.GroupsClaim == "":
			wrong(field, "needs groupsClaim, the claim that lists a user's groups")
		}
	}
	for _, uri := range p.RedirectURIs {
		u, err := url.Parse(uri)
		if err != nil || u.Scheme == "" || u.Fragment != "" || slices.Contains([]string{"javascript", "data", "vbscript", "file", "blob"}, strings.ToLower(u.Scheme)) || len(uri) > maxRedirect || !printable(uri, 1, maxRedirect) {
			wrong("redirectUris", "must be absolute addresses without a fragment, such as https://reader.example.org/signed-in or reader:/signed-in")
			break
		}
	}
	if len(p.RedirectURIs) > 50 {
		wrong("redirectUris", "must be at most 50")
	}
	slices.SortFunc(bad, func(a, b fault.Field) int { return strings.Compare(a.Field, b.Field) })
	return fault.InvalidFields(bad)
}

func printable(text string, least, most int) bool {
	n := utf8.RuneCountInString(text)
	return utf8.ValidString(text) && n >= least && n <= most && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Secret is a change of a provider's client secret.
type Secret struct {
	Text string // a new one; "": unchanged
	None bool   // the client has no secret
}

// Set creates a provider of the tenant in ctx, or replaces the one with this name; an omitted secret stays. If the
// issuer changes, the links to users of the old one are deleted.
func Set(ctx context.Context, system *db.DB, key *seal.Key, p Provider, secret Secret) (*Provider, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if secret.Text != "" && secret.None {
		return nil, fault.Invalid("noSecret", "must not be set together with a secret")
	}
	if len(secret.Text) > maxSecret {
		return nil, fault.Invalid("clientSecret", "must be at most %d bytes", maxSecret)
	}
	var out *Provider
	err := system.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var b pgx.Batch
		var old *secretive
		var n int
		b.Queue("select pg_advisory_xact_lock(hashtextextended('longbox oidc ' || app.tenant(), 0))")
		db.One(&b, &old, "select "+columns+", client_secret from oidc_provider where tenant_id = app.tenant() and name = $1", p.Name)
		db.Value(&b, &n, "select count(*) from oidc_provider where tenant_id = app.tenant()")
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		var sealed []byte
		p.ID = uuid.Must(uuid.NewV7())
		if old != nil {
			p.ID, sealed = old.ID, old.Secret
		} else if n >= maxProviders {
			return fault.New(fault.Conflict, "provider: the tenant already has %d, the most it can have; remove one first", maxProviders)
		}
		switch {
		case secret.None:
			sealed = nil
		case secret.Text != "":
			var err error
			if sealed, err = key.Seal(owner(db.ScopeOf(ctx).TenantID(), p.ID), []byte(secret.Text)); err != nil {
				return err
			}
		case old == nil:
			return fault.Invalid("clientSecret", "is required for a new provider: set it (--secret-file on the command line), or set noSecret (--no-secret)")
		}
		b = pgx.Batch{}
		if old != nil && old.Issuer != p.Issuer {
			b.Queue("delete from oidc_identity where tenant_id = app.tenant() and provider_id = $1", p.ID)
		}
		b.Queue("delete from oidc_state where tenant_id = app.tenant() and provider_id = $1", p.ID)
		db.One(&b, &out, `insert into oidc_provider as p (tenant_id, id, name, display_name, issuer, client_id, client_secret, scopes, admin_groups, maintainer_groups,
			reader_groups, groups_claim, username_claim, email_claim, create_users, default_role, redirect_uris, enabled,
			missing_groups, bearer_audience)
			values (app.tenant(), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
			on conflict (tenant_id, id) do update set display_name = excluded.display_name, issuer = excluded.issuer, client_id = excluded.client_id,
			client_secret = excluded.client_secret, scopes = excluded.scopes, admin_groups = excluded.admin_groups, maintainer_groups = excluded.maintainer_groups,
			reader_groups = excluded.reader_groups, groups_claim = excluded.groups_claim, username_claim = excluded.username_claim, email_claim = excluded.email_claim,
			create_users = excluded.create_users, default_role = excluded.default_role, redirect_uris = excluded.redirect_uris, enabled = excluded.enabled,
			missing_groups = excluded.missing_groups, bearer_audience = excluded.bearer_audience, updated_at = now() returning `+columns,
			p.ID, p.Name, p.DisplayName, p.Issuer, p.ClientID, sealed, p.Scopes, some(p.AdminGroups), some(p.MaintainerGroups), some(p.ReaderGroups),
			p.GroupsClaim, p.UsernameClaim, p.EmailClaim, p.CreateUsers, p.DefaultRole, some(p.RedirectURIs), p.Enabled,
			p.MissingGroups, p.BearerAudience)
		return tx.SendBatch(ctx, &b).Close()
	})
	return out, err
}

// some returns a non-nil copy.
func some(list []string) []string { return append([]string{}, list...) }

// List returns the providers of the tenant in ctx, by name.
func List(ctx context.Context, d *db.DB) ([]Provider, error) {
	return db.List[Provider](ctx, d, "select "+columns+" from oidc_provider where tenant_id = app.tenant() order by name")
}

// Remove deletes a provider of the tenant in ctx; its users stay.
func Remove(ctx context.Context, system *db.DB, name string) error {
	n, err := db.Exec(ctx, system, "delete from oidc_provider where tenant_id = app.tenant() and name = $1", name)
	if err == nil && n == 0 {
		err = fault.New(fault.NotFound, "provider: there is no provider named %q", name)
	}
	return err
}
