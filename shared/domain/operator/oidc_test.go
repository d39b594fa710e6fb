package operator_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/operator"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/seal"
)

func TestOIDC(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	made, other := r.details("create", "acme"), r.details("create", "beta")
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("the secret of the client\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	least := []string{"oidc", "set", "acme", "id", "--issuer", "https://id.example.org/realms/a", "--client-id", "longbox"}
	refused(t, r, fault.Unavailable, "CREDENTIALS_KEY", append(least, "--secret-file", file)...)
	key, err := seal.New(seal.Config{Key: strings.Repeat("QUFB", 10) + "QUE="})
	if err != nil {
		t.Fatal(err)
	}
	r.Key = key
	refused(t, r, fault.BadRequest, "clientSecret", least...)
	refused(t, r, fault.BadRequest, "secret-file", append(least, "--secret-file", file+"x")...)
	refused(t, r, fault.BadRequest, "secret-file", append(least, "--secret-file", os.DevNull)...)
	refused(t, r, fault.BadRequest, "noSecret", append(least, "--secret-file", file, "--no-secret")...)
	refused(t, r, fault.NotFound, "tenant", "oidc", "set", "none", "id", "--no-secret")
	got := r.do(append(least, "--secret-file", file)...).(operator.OIDCRecord)
	if got.DisplayName != "id" || !got.HasSecret || strings.Join(got.Scopes, " ") != "openid profile email" || got.GroupsClaim != "groups" || got.UsernameClaim != "preferred_username" ||
		got.EmailClaim != "email" || got.DefaultRole != "reader" || got.CreateUsers || !got.Enabled || got.Callback != "/api/v1/auth/oidc/id/callback" {
		t.Errorf("%+v", got)
	}
	var sealed []byte
	read := func() string {
		t.Helper()
		if err := r.db.Owner.Pool().QueryRow(context.Background(), "select client_secret from oidc_provider where tenant_id = $1 and name = 'id'", made.ID).Scan(&sealed); err != nil {
			t.Fatal(err)
		}
		secret, err := key.Open(made.ID.String()+"/oidc/"+r.text("select id::text from oidc_provider where name = 'id'"), sealed)
		if err != nil {
			t.Fatal(err)
		}
		return string(secret)
	}
	if secret := read(); secret != "the secret of the client" || strings.Contains(string(sealed), "client") {
		t.Errorf("%q", secret)
	}
	// Omitted fields are reset, except the secret.
	got = r.do(append(least, "--display-name", "Login", "--groups-claim", "", "--create-users", "--default-role", "maintainer", "--redirect-uri", "reader:/in", "--disabled")...).(operator.OIDCRecord)
	if got.DisplayName != "Login" || got.GroupsClaim != "" || !got.CreateUsers || got.DefaultRole != "maintainer" || got.Enabled || len(got.RedirectURIs) != 1 || read() != "the secret of the client" {
		t.Errorf("%+v", got)
	}
	out, err := r.Invoke(context.Background(), json.RawMessage(`{"command": "oidc set", "input": {"name": "acme", "provider": "id", "issuer": "https://id.example.org/realms/a", "clientId": "longbox",
		"clientSecret": "another", "adminGroups": ["a"], "groupsClaim": "roles"}}`))
	if got = out.(operator.OIDCRecord); err != nil || got.DisplayName != "id" || got.GroupsClaim != "roles" || len(got.AdminGroups) != 1 || !got.Enabled || read() != "another" {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := r.Invoke(context.Background(), json.RawMessage(`{"command": "oidc set", "input": {"name": "acme", "SecretFile": "/etc/passwd"}}`)); !fault.Is(err, fault.BadRequest) {
		t.Errorf("an event names a file: %v", err)
	}
	r.do("oidc", "set", "beta", "id", "--issuer", "http://10.0.0.1", "--client-id", "x", "--no-secret")
	for _, c := range []struct {
		says string
		args []string
	}{
		{"provider", []string{"Id"}}, {"provider", []string{strings.Repeat("a", 33)}}, {"provider", nil}, {"issuer", []string{"id", "--issuer", "id.example.org"}},
		{"issuer", []string{"id", "--issuer", "https://id.example.org?a"}}, {"issuer", []string{"id", "--issuer", "ftp://id.example.org"}}, {"issuer", []string{"id", "--issuer", "https://a:b@id.example.org"}},
		{"clientId", []string{"id", "--client-id", ""}}, {"scopes", []string{"id", "--scope", "profile"}}, {"scopes", []string{"id", "--scope", "openid profile"}},
		{"defaultRole", []string{"id", "--default-role", "king"}}, {"adminGroups", []string{"id", "--admin-group", "a", "--groups-claim", ""}}, {"displayName", []string{"id", "--display-name", strings.Repeat("a", 101)}},
		{"readerGroups", []string{"id", "--reader-group", ""}}, {"redirectUris", []string{"id", "--redirect-uri", "javascript:alert(1)"}}, {"redirectUris", []string{"id", "--redirect-uri", "/app"}},
		{"redirectUris", []string{"id", "--redirect-uri", "https://a.example.org/#x"}}, {"groupsClaim", []string{"id", "--groups-claim", "a\x00"}}, {"emailClaim", []string{"id", "--email-claim", "\xff"}},
	} {
		args := append([]string{"oidc", "set", "acme"}, c.args[:min(1, len(c.args))]...)
		args = append(args, "--issuer", "https://id.example.org", "--client-id", "longbox", "--no-secret")
		args = append(args, c.args[min(1, len(c.args)):]...)
		refused(t, r, fault.BadRequest, c.says, args...)
	}
	for n := range 19 {
		r.do("oidc", "set", "acme", "p"+string(rune('a'+n)), "--issuer", "https://id.example.org", "--client-id", "longbox", "--no-secret")
	}
	refused(t, r, fault.Conflict, "the most it can have", "oidc", "set", "acme", "another", "--issuer", "https://id.example.org", "--client-id", "longbox", "--no-secret")

	// A new issuer does not keep the links of users of the old one.
	r.exec("insert into account (tenant_id, id, username, email, password_hash, role) values ($1, $1, 'user', 'user@example.org', 'argon', 'reader')", made.ID)
	r.exec("insert into oidc_identity (tenant_id, provider_id, subject, account_id) select tenant_id, id, 's', tenant_id from oidc_provider where tenant_id = $1 and name in ('id', 'pa')", made.ID)
	r.do(least...)
	if n := r.number("select count(*) from oidc_identity"); n != 2 {
		t.Errorf("%d identities, want 2", n)
	}
	least[5] = "https://other.example.org"
	r.do(least...)
	if n := r.number("select count(*) from oidc_identity"); n != 1 {
		t.Errorf("%d identities, want 1", n)
	}
	if l := r.do("oidc", "list", "acme").(operator.Providers); len(l.Providers) != 20 || l.Providers[0].Name != "id" || !l.Providers[0].HasSecret || l.Providers[1].HasSecret {
		t.Errorf("%+v", l)
	}
	r.do("oidc", "remove", "acme", "id")
	refused(t, r, fault.NotFound, "provider", "oidc", "remove", "acme", "id")
	if n := r.number("select count(*) from oidc_provider where tenant_id = $1", other.ID); n != 1 {
		t.Error("the other tenant's provider is gone")
	}
	refused(t, r, fault.BadRequest, "oidc set", "oidc")
	refused(t, r, fault.BadRequest, "oidc set", "oidc", "drop")
}

func (r *rig) text(sql string) (s string) {
	r.t.Helper()
	if err := r.db.Owner.Pool().QueryRow(context.Background(), sql).Scan(&s); err != nil {
		r.t.Fatal(err)
	}
	return s
}
