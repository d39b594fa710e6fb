package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/plug"
)

// How long a provider's keys are used.
const (
	keysLast     = 24 * time.Hour  // if it cannot be reached; else as long as its metadata
	keysYoung    = time.Minute     // unknown keys trigger no earlier refresh: senders of tokens must not control requests
	keysPatience = 2 * time.Second // waiting time if slightly outdated keys are available
	notYet       = 5 * time.Second // Retry-After for functions that cannot fetch them
)

// maxKeys is the maximum number of keys of a provider.
const maxKeys = 100

// keySet verifies signatures with the public keys of a provider.
type keySet struct {
	set     jose.JSONWebKeySet
	unknown bool // the key of the last token is not in the set
}

// VerifySignature returns the content of a token that one of the keys has signed.
func (k *keySet) VerifySignature(_ context.Context, token string) ([]byte, error) {
	k.unknown = false
	j, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.RS256, jose.ES256})
	if err != nil {
		return nil, err
	}
	if len(j.Signatures) != 1 {
		return nil, errors.New("it does not have exactly one signature")
	}
	h := j.Signatures[0].Header
	named := false
	for _, key := range k.set.Keys {
		if h.KeyID != "" && key.KeyID != h.KeyID || key.Algorithm != "" && key.Algorithm != h.Algorithm {
			continue
		}
		named = named || h.KeyID != ""
		if content, err := j.Verify(&key); err == nil {
			return content, nil
		}
	}
	k.unknown = !named
	return nil, errors.New("none of the provider's keys verifies its signature")
}

// usable returns the provider's keys that may sign tokens: public ones of a sufficient size. Other keys are ignored.
func usable(all []json.RawMessage) (out jose.JSONWebKeySet) {
	out.Keys = []jose.JSONWebKey{}
	for _, data := range all {
		var key jose.JSONWebKey
		if err := json.Unmarshal(data, &key); err != nil {
			continue
		}
		fit := false
		switch public := key.Key.(type) {
		case *rsa.PublicKey:
			fit = public.N.BitLen() >= 2048 && public.N.BitLen() <= 8192
		case *ecdsa.PublicKey:
			fit = public.Curve == elliptic.P256()
		}
		fit = fit && key.Valid() && key.Use != "enc" && printable(key.KeyID, 0, 500) && (key.Algorithm == "" || slices.Contains(bearerAlgorithms, key.Algorithm))
		if fit && len(out.Keys) < maxKeys {
			// Without certificates.
			out.Keys = append(out.Keys, jose.JSONWebKey{Key: key.Key, KeyID: key.KeyID, Algorithm: key.Algorithm, Use: "sig"})
		}
	}
	return out
}

// keys returns the stored keys, or fetches them if they are too old. If there are some, it does not wait for a slow or
// failing provider.
func (b *Bearer) keys(ctx context.Context, p *linked) (*keySet, error) {
	kept := p.age() < keysLast
	if p.age() >= known && b.refresh != nil {
		asking := ctx
		if kept {
			limited, cancel := context.WithTimeout(ctx, keysPatience)
			defer cancel()
			asking = limited
		}
		if fresh, err := b.fetch(asking, p); err == nil || !kept {
			return fresh, err
		}
	}
	if !kept {
		return nil, noKeys()
	}
	k := &keySet{}
	return k, json.Unmarshal(p.Keys, &k.set)
}

// age returns the age of the stored keys; very large if there are none.
func (p *linked) age() time.Duration {
	if p.Age == nil || p.Keys == nil {
		return 100 * keysLast
	}
	return time.Duration(*p.Age * float64(time.Second))
}

// noKeys says that a token cannot be verified here, because only the api fetches keys.
func noKeys() error {
	return fault.New(fault.Unavailable, "The keys of the identity provider are not loaded yet; try again").After(notYet)
}

// fetch fetches the provider's current keys.
func (b *Bearer) fetch(ctx context.Context, p *linked) (*keySet, error) {
	if b.refresh == nil {
		return nil, noKeys()
	}
	return b.refresh(ctx, p)
}

// asker fetches keys from providers.
type asker struct {
	database *db.DB
	known    discovery
	asking   turns
}

// fetch fetches a provider's keys and stores them. One process at a time does so: if another has just started, it
// returns the other's result, or an error that the keys are not available yet.
func (a *asker) fetch(ctx context.Context, p *linked) (*keySet, error) {
	tenant := httpapi.TenantOf(ctx).ID
	err := a.asking.take(ctx, source{tenant, p.Issuer}, func(ctx context.Context) error {
		if first, err := a.claim(ctx, p.Issuer); err != nil || !first {
			return err
		}
		asking, f, err := a.known.of(ctx, tenant, p.Issuer)
		if err != nil {
			return err
		}
		set, err := a.ask(asking, p.Issuer, f.keys)
		if err != nil {
			return err
		}
		data, err := json.Marshal(set)
		if err != nil {
			return err
		}
		// For all providers of this issuer: concurrent writers are serialized here.
		_, err = db.Exec(ctx, a.database, `insert into oidc_keys (tenant_id, provider_id, issuer, keys)
			select p.tenant_id, p.id, p.issuer, $2 from oidc_provider p where p.tenant_id = app.tenant() and p.issuer = $1 and p.enabled order by p.id
			on conflict (tenant_id, provider_id) do update set issuer = excluded.issuer, keys = excluded.keys, fetched_at = now()`, p.Issuer, data)
		return err
	})
	if err != nil {
		httpapi.Note(ctx, slog.String("oidc", "keys of the provider: "+told{err}.Error()))
		return nil, unavailable(err)
	}
	kept, err := db.Get[linked](ctx, a.database, `select p.id, p.issuer, p.bearer_audience, k.keys, extract(epoch from now() - k.fetched_at)::double precision as age,
		  null::uuid as account_id, null::int as generation, null::boolean as is_active
		from oidc_provider p join oidc_keys k on k.tenant_id = p.tenant_id and k.provider_id = p.id and k.issuer = p.issuer
		where p.tenant_id = app.tenant() and p.id = $1`, p.ID)
	if err != nil {
		return nil, err
	}
	if kept == nil || kept.age() >= keysYoung { // the provider has just changed, or another process is fetching
		return nil, noKeys()
	}
	p.Keys, p.Age = kept.Keys, kept.Age
	k := &keySet{}
	return k, json.Unmarshal(p.Keys, &k.set)
}

// claim reports whether a provider may be asked now, because nobody has done so for a while.
func (a *asker) claim(ctx context.Context, issuer string) (bool, error) {
	n, err := db.Exec(ctx, a.database, `insert into oidc_keys as k (tenant_id, provider_id, issuer, keys, fetched_at)
		select p.tenant_id, p.id, p.issuer, '{"keys": []}', 'epoch' from oidc_provider p where p.tenant_id = app.tenant() and p.issuer = $1 and p.enabled order by p.id
		on conflict (tenant_id, provider_id) do update set asked_at = now(), issuer = excluded.issuer,
		  keys = case when k.issuer = excluded.issuer then k.keys else excluded.keys end,
		  fetched_at = case when k.issuer = excluded.issuer then k.fetched_at else excluded.fetched_at end
		where k.issuer <> excluded.issuer or k.asked_at <= now() - $2::interval`, issuer, pause)
	return n > 0, err
}

// ask reads the keys from a provider's address.
func (a *asker) ask(ctx context.Context, issuer, address string) (out jose.JSONWebKeySet, err error) {
	client, err := a.known.client(issuer)
	if err != nil {
		return out, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return out, err
	}
	res, err := client.Do(r)
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, plug.MaxWebBody))
	if err != nil {
		return out, err
	}
	if res.StatusCode != http.StatusOK {
		return out, fmt.Errorf("fetch keys: %s", res.Status)
	}
	var all struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return out, fmt.Errorf("parse keys: %w", err)
	}
	if out = usable(all.Keys); len(out.Keys) == 0 {
		return out, errors.New("the provider has no RS256 or ES256 key to verify access tokens with")
	}
	return out, nil
}
