package identity

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// A credential that was looked up is cached for a while.
const (
	remember = 5 * time.Minute
	maxKnown = 20_000
	// External credentials may be revoked without notice.
	rememberExternal = time.Minute
)

var errInvalid = fault.New(fault.Unauthorized, "The credential is invalid or has expired; sign in again")

// Identifier identifies credentials.
type Identifier struct {
	database *db.DB
	tokens   *auth.Tokens
	key      func() []byte // of the HMAC of cached credentials; the credentials themselves are not kept

	// External identifies bearer tokens that others have issued; nil: none are accepted. It is asked only about
	// credentials that can be nothing else.
	External External

	mu    sync.Mutex
	known map[[sha256.Size]byte]known
}

type known struct {
	account    uuid.UUID
	generation *int32
	keyHash    []byte
	ends       time.Time // expiry of a token; zero otherwise
	external   bool
	expires    time.Time // of the cache entry
}

// External identifies tokens of other issuers.
type External interface {
	// Takes reports whether a token has the right form, without I/O.
	Takes(token string) bool
	// Resolve returns the account of a token and its expiry; Unauthorized if there is none.
	Resolve(ctx context.Context, token string) (account uuid.UUID, generation int32, ends time.Time, err error)
}

// New makes an Identifier.
func New(d *db.DB, tokens *auth.Tokens) *Identifier {
	key := sync.OnceValue(func() []byte {
		key := make([]byte, 32)
		_, _ = rand.Read(key)
		return key
	})
	return &Identifier{database: d, tokens: tokens, key: key, known: map[[sha256.Size]byte]known{}}
}

// Known returns the caller of a token, or of a cached key or password, without I/O. It returns nil, without an error,
// if Resolve must look the credential up. A token's signature check is cached, too: it costs as much as the rest of a
// request for a cached page.
func (i *Identifier) Known(ctx context.Context, c httpapi.Credential) (*auth.Caller, error) {
	tenant := httpapi.TenantOf(ctx).ID
	seen := i.fingerprint(tenant, c)
	i.mu.Lock()
	k, ok := i.known[seen]
	i.mu.Unlock()
	if ok && time.Now().Before(k.expires) {
		return i.caller(tenant, seen, k), nil
	}
	if _, isKey := auth.APIKeyPrefix(secret(c)); c.Basic || isKey {
		return nil, nil
	}
	account, generation, ends, err := i.tokens.Verify(c.Bearer, tenant)
	if err != nil {
		if i.external(c) {
			return nil, nil
		}
		return nil, fault.Wrap(err, fault.Unauthorized, "%s", errInvalid.Message)
	}
	k = known{account: account, generation: &generation, ends: ends}
	i.keep(seen, k)
	return i.caller(tenant, seen, k), nil
}

// external reports whether External must check a credential. It never checks the session cookie, which holds our own
// tokens.
func (i *Identifier) external(c httpapi.Credential) bool {
	return i.External != nil && !c.Basic && !c.Cookie && i.External.Takes(c.Bearer)
}

// keep caches a credential for a while, a token at most until its expiry.
func (i *Identifier) keep(seen [sha256.Size]byte, k known) {
	k.expires = time.Now().Add(remember)
	if k.external {
		k.expires = time.Now().Add(rememberExternal)
	}
	if !k.ends.IsZero() && k.ends.Before(k.expires) {
		k.expires = k.ends
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.known) >= maxKnown {
		clear(i.known)
	}
	i.known[seen] = k
}

// Resolve looks up an API key or an external token, or checks a password, and caches the result.
func (i *Identifier) Resolve(ctx context.Context, c httpapi.Credential) (*auth.Caller, error) {
	tenant := httpapi.TenantOf(ctx).ID
	var k known
	var err error
	if prefix, isKey := auth.APIKeyPrefix(secret(c)); isKey {
		k, err = i.byKey(ctx, prefix, auth.HashSecret(secret(c)))
	} else if i.external(c) {
		k, err = i.byExternal(ctx, c.Bearer)
	} else {
		k, err = i.byPassword(ctx, c.Username, c.Password)
	}
	if err != nil {
		return nil, err
	}
	seen := i.fingerprint(tenant, c)
	i.keep(seen, k)
	return i.caller(tenant, seen, k), nil
}

// caller returns a caller that drops the cached credential as soon as the database refuses it. A password is bound to
// the generation of its account: otherwise a user who was disabled and enabled again would be locked out until the
// entry expires.
func (i *Identifier) caller(tenant uuid.UUID, seen [sha256.Size]byte, k known) *auth.Caller {
	return &auth.Caller{Tenant: tenant, AccountID: k.account, Generation: k.generation, KeyHash: k.keyHash, Expires: k.ends,
		Forget: func() {
			i.mu.Lock()
			delete(i.known, seen)
			i.mu.Unlock()
		}}
}

// secret returns what may be an API key: the bearer token, the X-API-Key header or the Basic password.
func secret(c httpapi.Credential) string {
	if c.Basic {
		return c.Password
	}
	return c.Bearer
}

type keyRow struct {
	Account uuid.UUID `db:"account_id"`
	Hash    []byte    `db:"hash"`
}

func (i *Identifier) byKey(ctx context.Context, prefix string, hash []byte) (known, error) {
	row, err := db.Get[keyRow](ctx, i.database, "select account_id, hash from api_key where tenant_id = app.tenant() and prefix = $1", prefix)
	if err != nil {
		return known{}, err
	}
	want := make([]byte, sha256.Size) // an unknown prefix is compared like a wrong key
	if row != nil {
		want = row.Hash
	}
	if subtle.ConstantTimeCompare(want, hash) != 1 || row == nil {
		return known{}, errInvalid
	}
	return known{account: row.Account, keyHash: hash}, nil
}

// Account is the data of a user for signing in.
type Account struct {
	ID           uuid.UUID `db:"id"`
	PasswordHash string    `db:"password_hash"`
	Generation   int32     `db:"generation"`
	IsActive     bool      `db:"is_active"`
}

// CheckPassword finds an active account by user name or e-mail address and checks the password. An unknown user takes
// as much time as a wrong password; either is Unauthorized.
func CheckPassword(ctx context.Context, d *db.DB, login, password string) (*Account, error) {
	if len(login) > 320 || len(password) > 1024 || !utf8.ValidString(login) || strings.ContainsRune(login, 0) {
		return nil, fault.New(fault.Unauthorized, "Invalid credentials")
	}
	row, err := db.Get[Account](ctx, d, `select id, password_hash, generation, is_active from account
		where tenant_id = app.tenant() and (lower(username) = lower($1) or lower(email) = lower($1))
		order by lower(username) = lower($1) desc limit 1`, norm.NFC.String(strings.TrimSpace(login))) // normalized like stored names
	if err != nil {
		return nil, err
	}
	hash := auth.NoPassword()
	if row != nil {
		hash = row.PasswordHash
	}
	ok, err := auth.CheckPassword(hash, password)
	if err != nil {
		return nil, err
	}
	if !ok || row == nil || !row.IsActive {
		return nil, fault.New(fault.Unauthorized, "Invalid credentials")
	}
	return row, nil
}

func (i *Identifier) byPassword(ctx context.Context, username, password string) (known, error) {
	a, err := CheckPassword(ctx, i.database, username, password)
	if err != nil {
		return known{}, err
	}
	return known{account: a.ID, generation: &a.Generation}, nil
}

func (i *Identifier) byExternal(ctx context.Context, token string) (known, error) {
	account, generation, ends, err := i.External.Resolve(ctx, token)
	return known{account: account, generation: &generation, ends: ends, external: true}, err
}

// fingerprint identifies a cached credential. The same text sent in another way is another credential: our token is no
// password, and that of another issuer is neither a password nor a cookie.
func (i *Identifier) fingerprint(tenant uuid.UUID, c httpapi.Credential) [sha256.Size]byte {
	mac := hmac.New(sha256.New, i.key())
	mac.Write(tenant[:])
	mac.Write(fmt.Appendln(nil, c.Basic, c.Cookie))
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(c.Username)))) // separates the two fields
	mac.Write([]byte(c.Username))
	mac.Write([]byte(secret(c)))
	return [sha256.Size]byte(mac.Sum(nil))
}
