package operator

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/longbox/longbox/shared/domain/oidc"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/seal"
)

// SetOIDC is the complete configuration of an identity provider for a tenant: an omitted field is empty or default,
// except the secret, which stays.
type SetOIDC struct {
	Name             string   `json:"name"`
	Provider         string   `json:"provider"`
	DisplayName      string   `json:"displayName" arg:"display-name" help:"name that people see; default: the provider's name"`
	Issuer           string   `json:"issuer" arg:"issuer" help:"the provider's issuer address; .well-known/openid-configuration is below it"`
	ClientID         string   `json:"clientId" arg:"client-id" help:"client id of Longbox at the provider"`
	ClientSecret     string   `json:"clientSecret" arg:"-"`
	SecretFile       string   `json:"-" arg:"secret-file" help:"file with the client secret; - is standard input; default: the present secret stays"`
	NoSecret         bool     `json:"noSecret" arg:"no-secret" help:"the client has no secret at the provider"`
	Scopes           []string `json:"scopes" arg:"scope" help:"a scope; may be repeated; default: openid, profile and email"`
	GroupsClaim      *string  `json:"groupsClaim" arg:"groups-claim" help:"claim that lists a user's groups; default: groups; empty: groups are not read"`
	MissingGroups    string   `json:"missingGroups" arg:"missing-groups" help:"what a missing claim of groups means: none (the user is in no group) or keep (role and access groups stay); default: none"`
	UsernameClaim    string   `json:"usernameClaim" arg:"username-claim" help:"claim with the user name; default: preferred_username"`
	EmailClaim       string   `json:"emailClaim" arg:"email-claim" help:"claim with the e-mail address; default: email"`
	AdminGroups      []string `json:"adminGroups" arg:"admin-group" help:"group whose members are administrators; may be repeated. If any group gives a role, each sign-in sets the role"`
	MaintainerGroups []string `json:"maintainerGroups" arg:"maintainer-group" help:"group whose members are maintainers; may be repeated"`
	ReaderGroups     []string `json:"readerGroups" arg:"reader-group" help:"group whose members are readers; may be repeated"`
	DefaultRole      string   `json:"defaultRole" arg:"default-role" help:"role of users who are in none of these groups; default: reader"`
	CreateUsers      bool     `json:"createUsers" arg:"create-users" help:"create users who do not exist yet"`
	RedirectURIs     []string `json:"redirectUris" arg:"redirect-uri" help:"address that a sign-in may redirect to with the session, besides addresses of the tenant's host; may be repeated"`
	BearerAudience   string   `json:"bearerAudience" arg:"bearer-audience" help:"audience of the provider's access tokens that are accepted as credentials of requests; default: none are accepted"`
	Disabled         bool     `json:"disabled" arg:"disabled" help:"keep the provider, but let nobody sign in with it"`
}

// OneOIDC names an identity provider of a tenant.
type OneOIDC struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
}

// Providers are the identity providers of a tenant. Each redirects browsers to Callback on the tenant's host.
type Providers struct {
	Name      string       `json:"name"`
	Providers []OIDCRecord `json:"providers"`
}

// OIDCRecord is an identity provider, without its secret.
type OIDCRecord struct {
	oidc.Provider
	Callback string `json:"callback"`
}

func record(p oidc.Provider) OIDCRecord {
	return OIDCRecord{p, "/api/v1/auth/oidc/" + p.Name + "/callback"}
}

func (o *Operator) setOIDC(ctx context.Context, i SetOIDC) (any, error) {
	secret, err := i.secret()
	if err != nil {
		return nil, err
	}
	t, err := o.alive(ctx, i.Name)
	if err != nil {
		return nil, err
	}
	groups := "groups"
	if i.GroupsClaim != nil {
		groups = *i.GroupsClaim
	}
	key := o.Key
	if key == nil {
		key = &seal.Key{}
	}
	p, err := oidc.Set(in(ctx, t), o.System, key, oidc.Provider{Name: i.Provider, DisplayName: i.DisplayName, Issuer: i.Issuer, ClientID: i.ClientID, Scopes: i.Scopes,
		AdminGroups: i.AdminGroups, MaintainerGroups: i.MaintainerGroups, ReaderGroups: i.ReaderGroups, GroupsClaim: groups, UsernameClaim: i.UsernameClaim,
		EmailClaim: i.EmailClaim, CreateUsers: i.CreateUsers, DefaultRole: i.DefaultRole, RedirectURIs: i.RedirectURIs, Enabled: !i.Disabled,
		MissingGroups: i.MissingGroups, BearerAudience: i.BearerAudience},
		oidc.Secret{Text: secret, None: i.NoSecret})
	if err != nil {
		return nil, err
	}
	return record(*p), nil
}

// secret returns the client secret, from the event or from the file that the command line names.
func (i SetOIDC) secret() (string, error) {
	if i.SecretFile == "" {
		return i.ClientSecret, nil
	}
	from := io.Reader(os.Stdin)
	if i.SecretFile != "-" {
		f, err := os.Open(i.SecretFile)
		if err != nil {
			return "", fault.Invalid("secret-file", "%v", err)
		}
		defer f.Close()
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, 1<<16))
	if err != nil {
		return "", fmt.Errorf("secret-file: %w", err)
	}
	secret := strings.TrimRight(string(data), "\r\n")
	if secret == "" {
		return "", fault.Invalid("secret-file", "is empty")
	}
	return secret, nil
}

func (o *Operator) listOIDC(ctx context.Context, i One) (any, error) {
	t, err := o.find(ctx, i.Name)
	if err != nil {
		return nil, err
	}
	all, err := oidc.List(in(ctx, t), o.System)
	if err != nil {
		return nil, err
	}
	out := Providers{Name: t.Name, Providers: []OIDCRecord{}}
	for _, p := range all {
		out.Providers = append(out.Providers, record(p))
	}
	return out, nil
}

func (o *Operator) removeOIDC(ctx context.Context, i OneOIDC) (any, error) {
	t, err := o.alive(ctx, i.Name)
	if err != nil {
		return nil, err
	}
	if err := oidc.Remove(in(ctx, t), o.System, i.Provider); err != nil {
		return nil, err
	}
	return o.listOIDC(ctx, One{i.Name})
}
