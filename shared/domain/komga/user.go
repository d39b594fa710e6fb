package komga

import (
	"context"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// User is who asks.
type User struct {
	ID                  string       `json:"id"`
	Email               string       `json:"email"`
	Roles               []string     `json:"roles" nullable:"false" example:"USER"`
	SharedAllLibraries  bool         `json:"sharedAllLibraries"`
	SharedLibrariesIDs  []string     `json:"sharedLibrariesIds" nullable:"false"`
	LabelsAllow         []string     `json:"labelsAllow" nullable:"false"`
	LabelsExclude       []string     `json:"labelsExclude" nullable:"false"`
	AgeRestriction      *struct{}    `json:"ageRestriction" doc:"Always null"`
	ContentRestrictions Restrictions `json:"contentRestrictions"`
}

// Restrictions is what a user may not see: of that there is nothing.
type Restrictions struct {
	LabelsAllow   []string `json:"labelsAllow" nullable:"false"`
	LabelsExclude []string `json:"labelsExclude" nullable:"false"`
}

var userRoles = map[string][]string{"admin": {"ADMIN"}, "maintainer": {"USER", "FILE_DOWNLOAD"}, "reader": {"USER"}}

func users(a *httpapi.API, d *db.DB) {
	for _, v := range []struct{ version, id string }{{"v1", "FirstMe"}, {"v2", "Me"}} {
		httpapi.Register(a, operation("GET", "/"+v.version+"/users/me", v.id, "Get the caller", httpapi.SignedIn),
			func(ctx context.Context, _ *At) (*User, error) {
				if err := d.Enter(ctx); err != nil {
					return nil, err
				}
				c := auth.CallerOf(ctx)
				return &User{ID: c.AccountID.String(), Email: c.Email, Roles: userRoles[c.Role], SharedAllLibraries: true, SharedLibrariesIDs: []string{},
					LabelsAllow: []string{}, LabelsExclude: []string{}, ContentRestrictions: Restrictions{[]string{}, []string{}}}, nil
			})
	}
}
