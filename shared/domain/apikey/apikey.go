package apikey

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Limits of one user's keys.
const (
	maxName = 100
	maxKeys = 100
)

// APIKey is a key without its secret.
type APIKey struct {
	ID          uuid.UUID  `json:"id" db:"id" format:"uuid"`
	UserID      uuid.UUID  `json:"userId" db:"account_id" format:"uuid"`
	Name        string     `json:"name" db:"name"`
	KeyPrefix   string     `json:"keyPrefix" db:"prefix"`
	Permissions []string   `json:"permissions" db:"permissions" nullable:"false"`
	IsActive    bool       `json:"isActive" db:"is_active"`
	ExpiresAt   *time.Time `json:"expiresAt" db:"expires_at" nullable:"true"`
	LastUsedAt  *time.Time `json:"lastUsedAt" db:"last_used_at" nullable:"true"`
	CreatedAt   time.Time  `json:"createdAt" db:"created_at"`
	UpdatedAt   time.Time  `json:"updatedAt" db:"updated_at"`
}

// CreatedAPIKey is a new key; only this response contains the whole key.
type CreatedAPIKey struct {
	ID          uuid.UUID  `json:"id" format:"uuid"`
	UserID      uuid.UUID  `json:"user_id" format:"uuid"`
	Name        string     `json:"name"`
	Key         string     `json:"key" doc:"Complete key; no other response contains it"`
	KeyPrefix   string     `json:"key_prefix"`
	Permissions []string   `json:"permissions" nullable:"false"`
	IsActive    bool       `json:"is_active"`
	ExpiresAt   *time.Time `json:"expires_at" nullable:"true"`
	LastUsedAt  *time.Time `json:"last_used_at" nullable:"true"`
	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"`
}

// Create describes a key to create.
type Create struct {
	Name        string                      `json:"name" maxLength:"100"`
	Permissions httpapi.Optional[[]string]  `json:"permissions,omitempty" doc:"Permissions of the key; defaults to all permissions of the caller"`
	ExpiresAt   httpapi.Optional[time.Time] `json:"expiresAt,omitempty" doc:"Time at which the key expires; defaults to the expiry of the API key of the request, if any, otherwise never"`
}

func (in Create) check() (name string, permissions []string, err error) {
	name = strings.TrimSpace(in.Name)
	bad := checkName(name)
	if in.Permissions.Value != nil {
		var faults []fault.Field
		permissions, faults = checkPermissions(*in.Permissions.Value)
		bad = append(bad, faults...)
	}
	if in.ExpiresAt.Value != nil {
		bad = append(bad, checkExpiry(*in.ExpiresAt.Value)...)
	}
	return name, permissions, fault.InvalidFields(bad)
}

func checkName(name string) []fault.Field {
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		return []fault.Field{{Field: "name", Message: "is required"}}
	case n > maxName:
		return []fault.Field{{Field: "name", Message: "must be at most 100 characters"}}
	case strings.ContainsFunc(name, naming.Hidden):
		return []fault.Field{{Field: "name", Message: "must not contain control characters or characters that change the direction of text"}}
	}
	return nil
}

func checkPermissions(in []string) ([]string, []fault.Field) {
	if len(in) == 0 {
		return nil, []fault.Field{{Field: "permissions", Message: "must name at least one permission"}}
	}
	return auth.CheckPermissions(in)
}

func checkExpiry(t time.Time) []fault.Field {
	if !t.After(time.Now()) || t.UTC().Year() > 9999 {
		return []fault.Field{{Field: "expiresAt", Message: "must be in the future"}}
	}
	return nil
}

// checkGrant refuses what exceeds the caller's rights: a permission or, for a caller with an expiring key, a later
// expiry.
func checkGrant(c *auth.Caller, permissions []string, callerEnds, ends *time.Time) error {
	for _, p := range permissions {
		if !c.May(p) {
			return fault.New(fault.Forbidden, "You cannot give a key a permission that you do not have: %s", p)
		}
	}
	if lasts(ends, callerEnds) {
		return fault.New(fault.Forbidden, "Your API key expires, so you cannot give a key a later expiry than %s", callerEnds.Format(time.RFC3339))
	}
	return nil
}

// lasts reports whether an expiry is later than another; nil is never.
func lasts(ends, than *time.Time) bool {
	return than != nil && (ends == nil || ends.After(*than))
}

func create(ctx context.Context, d *db.DB, in Create) (*CreatedAPIKey, error) {
	name, permissions, err := in.check()
	callerEnds, enterErr := keyEnds(ctx, d)
	if enterErr != nil {
		return nil, enterErr
	}
	if err != nil {
		return nil, err
	}
	c := auth.CallerOf(ctx)
	if permissions == nil {
		permissions = effective(c)
	}
	ends := in.ExpiresAt.Value
	if !in.ExpiresAt.Set {
		ends = callerEnds
	}
	if err := checkGrant(c, permissions, callerEnds, ends); err != nil {
		return nil, err
	}
	key, prefix, hash := auth.NewAPIKey()
	stored, err := insert(ctx, d, APIKey{ID: uuid.Must(uuid.NewV7()), Name: name, KeyPrefix: prefix, Permissions: permissions, ExpiresAt: ends}, hash)
	if err != nil {
		return nil, err
	}
	if stored == nil {
		return nil, fault.New(fault.Conflict, "A user can keep %d API keys; delete some first", maxKeys)
	}
	return &CreatedAPIKey{ID: stored.ID, UserID: stored.UserID, Name: stored.Name, Key: key, KeyPrefix: stored.KeyPrefix, Permissions: stored.Permissions,
		IsActive: stored.IsActive, ExpiresAt: stored.ExpiresAt, LastUsedAt: stored.LastUsedAt, CreatedAt: stored.CreatedAt, UpdatedAt: stored.UpdatedAt}, nil
}

// effective returns the caller's permissions without duplicates.
func effective(c *auth.Caller) []string {
	return slices.Compact(slices.Sorted(slices.Values(c.Permissions)))
}

// find returns a key that the caller may see. Keys of other users require the permission act; they are hidden from
// callers who may not even read users.
func find(ctx context.Context, d *db.DB, id uuid.UUID, act string) (*APIKey, *time.Time, error) {
	k, callerEnds, err := load(ctx, d, id)
	if err != nil {
		return nil, nil, err
	}
	c := auth.CallerOf(ctx)
	switch {
	case k == nil:
		return nil, nil, fault.Missing("API key")
	case k.UserID == c.AccountID, c.May(act):
		return k, callerEnds, nil
	case c.May(auth.UsersRead):
		return nil, nil, fault.New(fault.Forbidden, "Missing required permission: %s", act)
	}
	return nil, nil, fault.Missing("API key")
}

// Update changes a key; an absent field stays.
type Update struct {
	Name        httpapi.Optional[string]    `json:"name,omitempty" maxLength:"100" nullable:"false"`
	Permissions httpapi.Optional[[]string]  `json:"permissions,omitempty" nullable:"false"`
	IsActive    httpapi.Optional[bool]      `json:"isActive,omitempty" nullable:"false"`
	ExpiresAt   httpapi.Optional[time.Time] `json:"expiresAt,omitempty" doc:"Null means that the key does not expire"`
}

func (in Update) apply(k APIKey) (APIKey, error) {
	var bad []fault.Field
	if in.Name.Set {
		k.Name = strings.TrimSpace(in.Name.Or(""))
		bad = append(bad, checkName(k.Name)...)
	}
	if in.Permissions.Set {
		permissions, faults := checkPermissions(in.Permissions.Or(nil))
		k.Permissions, bad = permissions, append(bad, faults...)
	}
	if in.IsActive.Set {
		if in.IsActive.Value == nil {
			bad = append(bad, fault.Field{Field: "isActive", Message: "must be true or false"})
		}
		k.IsActive = in.IsActive.Or(false)
	}
	if in.ExpiresAt.Set {
		k.ExpiresAt = in.ExpiresAt.Value
		if k.ExpiresAt != nil {
			bad = append(bad, checkExpiry(*k.ExpiresAt)...)
		}
	}
	return k, fault.InvalidFields(bad)
}

// update changes a key. If it was changed between the check and the write, it is checked again.
func update(ctx context.Context, d *db.DB, id uuid.UUID, in Update) (*APIKey, error) {
	for range 3 {
		if k, err := checkAndSave(ctx, d, id, in); k != nil || err != nil {
			return k, err
		}
	}
	return nil, fault.New(fault.Conflict, "The API key is being changed by others; try again")
}

// checkAndSave changes a key, unless it was changed meanwhile: then it returns nil.
func checkAndSave(ctx context.Context, d *db.DB, id uuid.UUID, in Update) (*APIKey, error) {
	old, callerEnds, err := find(ctx, d, id, auth.UsersWrite)
	if err != nil {
		return nil, err
	}
	next, err := in.apply(*old)
	if err != nil {
		return nil, err
	}
	// Reactivating a key or extending its life counts as granting all its permissions again.
	woken := next.IsActive && !old.IsActive
	var granted []string
	if in.Permissions.Set || woken || lasts(next.ExpiresAt, old.ExpiresAt) {
		granted = next.Permissions
	}
	more := slices.ContainsFunc(next.Permissions, func(p string) bool { return !slices.Contains(old.Permissions, p) })
	if !in.ExpiresAt.Set && !woken && !more {
		callerEnds = nil // the expiry is not extended
	}
	if err := checkGrant(auth.CallerOf(ctx), granted, callerEnds, next.ExpiresAt); err != nil {
		return nil, err
	}
	return save(ctx, d, id, in, next)
}
