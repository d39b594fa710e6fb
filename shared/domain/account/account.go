package account

import (
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/mail"
)

// User is a user as administrators and the user see it.
type User struct {
	ID            uuid.UUID  `json:"id" db:"id" format:"uuid"`
	Username      string     `json:"username" db:"username"`
	Email         string     `json:"email" db:"email"`
	Role          string     `json:"role" db:"role" enum:"reader,maintainer,admin"`
	IsActive      bool       `json:"isActive" db:"is_active"`
	EmailVerified bool       `json:"emailVerified" db:"email_verified"`
	Permissions   []string   `json:"permissions" db:"permissions" nullable:"false" doc:"Permissions in addition to those of the role"`
	LastLoginAt   *time.Time `json:"lastLoginAt" db:"last_login_at" nullable:"true"`
	CreatedAt     time.Time  `json:"createdAt" db:"created_at"`
	UpdatedAt     time.Time  `json:"updatedAt" db:"updated_at"`
}

// UserInfo is the user of a session.
type UserInfo struct {
	ID            uuid.UUID `json:"id" db:"id" format:"uuid"`
	Username      string    `json:"username" db:"username"`
	Email         string    `json:"email" db:"email"`
	Role          string    `json:"role" db:"role" enum:"reader,maintainer,admin"`
	EmailVerified bool      `json:"emailVerified" db:"email_verified"`
	Permissions   []string  `json:"permissions" db:"permissions" nullable:"false" doc:"Permissions in addition to those of the role"`
}

// service holds the dependencies of the operations.
type service struct {
	database  *db.DB
	tokens    *auth.Tokens
	bump      events.AccessChanged
	mail      mail.Sender
	publicURL string
}
