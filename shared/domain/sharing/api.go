package sharing

import (
	"context"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// ListInput names the owner of a list.
type ListInput struct {
	httpapi.IDInput
	httpapi.Paging
}

// TagInput names a sharing tag of a series, user or group.
type TagInput struct {
	httpapi.IDInput
	TagID uuid.UUID `path:"tagId" format:"uuid"`
}

// MemberInput names a member of a group.
type MemberInput struct {
	httpapi.IDInput
	UserID uuid.UUID `path:"userId" format:"uuid"`
}

// NewBody is a sharing tag or group to create.
type NewBody struct {
	Name        string  `json:"name" minLength:"1" maxLength:"100" doc:"Must be unique, ignoring case"`
	Description *string `json:"description,omitempty" maxLength:"1000" nullable:"true"`
}

// ChangeBody changes a sharing tag or group; an absent field stays.
type ChangeBody struct {
	Name        httpapi.Optional[string] `json:"name,omitempty" maxLength:"100" nullable:"false" doc:"Must be unique, ignoring case"`
	Description httpapi.Optional[string] `json:"description,omitempty" maxLength:"1000" doc:"Null means no description"`
}

// GrantBody allows or denies a tag.
type GrantBody struct {
	SharingTagID uuid.UUID `json:"sharingTagId" format:"uuid"`
	AccessMode   string    `json:"accessMode" enum:"allow,deny"`
}

// SeriesTagBody is a tag to add to a series.
type SeriesTagBody struct {
	SharingTagID uuid.UUID `json:"sharingTagId" format:"uuid"`
}

// SeriesTagsBody are all tags of a series.
type SeriesTagsBody struct {
	SharingTagIDs []uuid.UUID `json:"sharingTagIds" nullable:"false" maxItems:"100"`
}

// MembersBody are users to add to a group.
type MembersBody struct {
	UserIDs []uuid.UUID `json:"userIds" nullable:"false" minItems:"1" maxItems:"100"`
}

// service holds the dependencies of the operations. bump is called after a change of what somebody may see.
type service struct {
	database *db.DB
	publish  events.Publish
	bump     events.AccessChanged
}

// Routes registers the operations on sharing tags, grants and access groups. bump is called after a change of what
// somebody may see.
func Routes(a *httpapi.API, d *db.DB, publish events.Publish, bump events.AccessChanged) {
	s := &service{d, publish, bump}
	s.tagRoutes(a)
	s.seriesRoutes(a)
	s.userRoutes(a)
	s.groupRoutes(a)
	s.oidcRoutes(a)
}

var operation = httpapi.Group{Path: "/api/v1", Tag: "Sharing"}.For(auth.SystemAdmin)

// bumped tells every process that permissions have changed, unless the change failed, and then the clients of the users
// concerned, or of all, that they must reload.
func (s *service) bumped(ctx context.Context, err error, users ...uuid.UUID) error {
	if err != nil {
		return err
	}
	tenant := httpapi.TenantOf(ctx).ID
	s.bump(ctx, tenant)
	if len(users) == 0 {
		s.publish(ctx, tenant, events.Resync("access_changed"))
		return nil
	}
	told := make([]events.Event, len(users))
	for i, user := range users {
		told[i] = events.Resync("access_changed")
		told[i].UserID = user.String()
	}
	s.publish(ctx, tenant, told...)
	return nil
}

func (s *service) tagRoutes(a *httpapi.API) {
	httpapi.Register(a, operation("GET", "/admin/sharing-tags", "listSharingTags", "List sharing tags by name"),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[Tag], error) {
			page, total, err := tags.list(ctx, s.database, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	add := operation("POST", "/admin/sharing-tags", "createSharingTag", "Create a sharing tag")
	add.Status = 201
	httpapi.Register(a, add,
		func(ctx context.Context, in *struct{ Body NewBody }) (*Tag, error) {
			return tags.create(ctx, s.database, &in.Body)
		})
	httpapi.Register(a, operation("GET", "/admin/sharing-tags/{id}", "getSharingTag", "Get a sharing tag"),
		func(ctx context.Context, in *httpapi.IDInput) (*Tag, error) { return tags.get(ctx, s.database, in.ID) })
	httpapi.Register(a, operation("PATCH", "/admin/sharing-tags/{id}", "updateSharingTag", "Update the name or description of a sharing tag"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body ChangeBody
		}) (*Tag, error) {
			return tags.update(ctx, s.database, in.ID, in.Body)
		})
	httpapi.Register(a, operation("DELETE", "/admin/sharing-tags/{id}", "deleteSharingTag",
		"Delete a sharing tag; it is removed from all series, and its grants are deleted"),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			return nil, s.bumped(ctx, tags.remove(ctx, s.database, in.ID))
		})
}

func (s *service) seriesRoutes(a *httpapi.API) {
	const at = "/series/{id}/sharing-tags"
	httpapi.Register(a, operation("GET", at, "listSeriesSharingTags", "List the sharing tags of a series by name"),
		func(ctx context.Context, in *ListInput) (*httpapi.Page[TagSummary], error) {
			found, err := seriesTags(ctx, s.database, in.ID)
			if err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, found), nil
		})
	httpapi.Register(a, operation("PUT", at, "putSeriesSharingTags", "Replace the sharing tags of a series"),
		func(ctx context.Context, in *struct {
			ListInput
			Body SeriesTagsBody
		}) (*httpapi.Page[TagSummary], error) {
			found, err := s.replaceSeriesTags(ctx, in.ID, in.Body.SharingTagIDs)
			if err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, found), nil
		})
	httpapi.Register(a, operation("POST", at, "addSeriesSharingTag", "Add a sharing tag to a series; no effect if the series already has it"),
		func(ctx context.Context, in *struct {
			ListInput
			Body SeriesTagBody
		}) (*httpapi.Page[TagSummary], error) {
			found, err := s.addSeriesTag(ctx, in.ID, in.Body.SharingTagID)
			if err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, found), nil
		})
	httpapi.Register(a, operation("DELETE", at+"/{tagId}", "removeSeriesSharingTag", "Remove a sharing tag from a series"),
		func(ctx context.Context, in *TagInput) (*httpapi.None, error) {
			return nil, s.dropSeriesTag(ctx, in.ID, in.TagID)
		})
}

func (s *service) userRoutes(a *httpapi.API) {
	own := operation("GET", "/user/sharing-tags", "listOwnSharingTags", "List the caller's direct sharing tag grants, without those of access groups")
	own.Permission = httpapi.SignedIn
	httpapi.Register(a, own,
		func(ctx context.Context, _ *struct{}) (*UserGrants, error) {
			return userGrants(ctx, s.database, auth.CallerOf(ctx).AccountID)
		})
	const at = "/users/{id}/sharing-tags"
	httpapi.Register(a, operation("GET", at, "listUserSharingTags", "List a user's direct sharing tag grants, without those of access groups"),
		func(ctx context.Context, in *httpapi.IDInput) (*UserGrants, error) {
			return userGrants(ctx, s.database, in.ID)
		})
	httpapi.Register(a, operation("PUT", at, "putUserSharingTag", "Allow or deny a sharing tag for a user"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body GrantBody
		}) (*UserGrant, error) {
			g, err := users.grant(ctx, s.database, in.ID, in.Body)
			return &UserGrant{g.ID, g.Grant}, s.bumped(ctx, err, in.ID)
		})
	httpapi.Register(a, operation("DELETE", at+"/{tagId}", "deleteUserSharingTag", "Remove a grant of a sharing tag from a user"),
		func(ctx context.Context, in *TagInput) (*httpapi.None, error) {
			return nil, s.bumped(ctx, users.revoke(ctx, s.database, in.ID, in.TagID), in.ID)
		})
	httpapi.Register(a, operation("GET", "/users/{id}/effective-grants", "listUserEffectiveGrants",
		"List the effective sharing tag grants of a user with their sources; deny takes precedence"),
		func(ctx context.Context, in *httpapi.IDInput) (*EffectiveGrants, error) {
			return effectiveGrants(ctx, s.database, in.ID)
		})
	httpapi.Register(a, operation("GET", "/users/{id}/access-groups", "listUserAccessGroups", "List the access groups of a user by name"),
		func(ctx context.Context, in *ListInput) (*httpapi.Page[GroupSummary], error) {
			found, err := groupsOf(ctx, s.database, in.ID)
			if err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, found), nil
		})
}

func (s *service) groupRoutes(a *httpapi.API) {
	const at = "/access-groups"
	httpapi.Register(a, operation("GET", at, "listAccessGroups", "List access groups by name"),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[Group], error) {
			page, total, err := groups.list(ctx, s.database, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	add := operation("POST", at, "createAccessGroup", "Create an access group")
	add.Status = 201
	httpapi.Register(a, add,
		func(ctx context.Context, in *struct{ Body NewBody }) (*Group, error) {
			return groups.create(ctx, s.database, &in.Body)
		})
	httpapi.Register(a, operation("GET", at+"/{id}", "getAccessGroup", "Get an access group with its members and sharing tag grants"),
		func(ctx context.Context, in *httpapi.IDInput) (*GroupDetails, error) {
			return groupDetails(ctx, s.database, in.ID)
		})
	httpapi.Register(a, operation("PATCH", at+"/{id}", "updateAccessGroup", "Update the name or description of an access group"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body ChangeBody
		}) (*Group, error) {
			return groups.update(ctx, s.database, in.ID, in.Body)
		})
	httpapi.Register(a, operation("DELETE", at+"/{id}", "deleteAccessGroup", "Delete an access group with its grants; the users who were members are kept"),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			return nil, s.bumped(ctx, groups.remove(ctx, s.database, in.ID))
		})
	httpapi.Register(a, operation("POST", at+"/{id}/grants", "addAccessGroupGrant", "Allow or deny a sharing tag for the members of an access group"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body GrantBody
		}) (*Grant, error) {
			g, err := members.grant(ctx, s.database, in.ID, in.Body)
			return &g.Grant, s.bumped(ctx, err)
		})
	httpapi.Register(a, operation("DELETE", at+"/{id}/grants/{tagId}", "removeAccessGroupGrant", "Remove a grant of a sharing tag from an access group"),
		func(ctx context.Context, in *TagInput) (*httpapi.None, error) {
			return nil, s.bumped(ctx, members.revoke(ctx, s.database, in.ID, in.TagID))
		})
	httpapi.Register(a, operation("POST", at+"/{id}/members", "addAccessGroupMembers", "Add users to an access group; returns all members"),
		func(ctx context.Context, in *struct {
			ListInput
			Body MembersBody
		}) (*httpapi.Page[Member], error) {
			all, err := addMembers(ctx, s.database, in.ID, in.Body.UserIDs)
			if err := s.bumped(ctx, err, in.Body.UserIDs...); err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, all), nil
		})
	httpapi.Register(a, operation("DELETE", at+"/{id}/members/{userId}", "removeAccessGroupMember", "Remove a user from an access group"),
		func(ctx context.Context, in *MemberInput) (*httpapi.None, error) {
			return nil, s.bumped(ctx, removeMember(ctx, s.database, in.ID, in.UserID), in.UserID)
		})
}
