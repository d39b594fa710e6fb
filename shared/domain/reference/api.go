package reference

import (
	"context"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/owner"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// TitleInput names an alternate title of a series.
type TitleInput struct {
	httpapi.IDInput
	TitleID uuid.UUID `path:"referenceId" format:"uuid"`
}

// TitleBody is another title of a series.
type TitleBody struct {
	Label string `json:"label" minLength:"1" maxLength:"100" doc:"Kind of title, for example its language"`
	Title string `json:"title" minLength:"1" maxLength:"1000"`
}

// TitleChanges changes the non-null fields of an alternate title.
type TitleChanges struct {
	Label *string `json:"label,omitempty" minLength:"1" maxLength:"100" nullable:"true"`
	Title *string `json:"title,omitempty" minLength:"1" maxLength:"1000" nullable:"true"`
}

// IDBody is the id of a series or book at a service.
type IDBody struct {
	Source      string  `json:"source" minLength:"1" maxLength:"100" doc:"Name of the service; there is one id per service"`
	ExternalID  string  `json:"externalId" minLength:"1" maxLength:"500"`
	ExternalURL *string `json:"externalUrl,omitempty" maxLength:"2000" nullable:"true" doc:"HTTP or HTTPS URL"`
}

// LinkBody is a page about a series or book.
type LinkBody struct {
	SourceName string  `json:"sourceName" minLength:"1" maxLength:"100" doc:"Name of the service; there is one link per service"`
	URL        string  `json:"url" minLength:"1" maxLength:"2000" doc:"HTTP or HTTPS URL"`
	ExternalID *string `json:"externalId,omitempty" maxLength:"500" nullable:"true"`
}

// RatingBody is the rating of a series by a service's users.
type RatingBody struct {
	SourceName string  `json:"sourceName" minLength:"1" maxLength:"100" doc:"Name of the service, stored in lower case; there is one rating per service"`
	Rating     float64 `json:"rating" minimum:"0" maximum:"100"`
	VoteCount  *int32  `json:"voteCount,omitempty" minimum:"0" nullable:"true"`
}

// check collects validation errors of a body.
type check struct{ bad []fault.Field }

// line validates a single-line text. nil stays null; an optional empty text becomes null.
func (c *check) line(field string, text *string) *string {
	if text != nil && !naming.Printable(text) {
		c.bad = append(c.bad, fault.Field{Field: field, Message: "must contain visible characters and no control characters"})
	}
	return text
}

func (c *check) optional(field string, text *string) *string {
	if text != nil && *text == "" {
		return nil
	}
	return c.line(field, text)
}

// address validates a URL that a browser may safely open.
func (c *check) address(field string, text *string) *string {
	text = c.optional(field, text)
	if text == nil {
		return nil
	}
	if u, err := url.Parse(*text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		c.bad = append(c.bad, fault.Field{Field: field, Message: "must be an http or https address"})
	}
	return text
}

func (b *TitleBody) values(c *check) []any {
	return []any{c.line("label", &b.Label), c.line("title", &b.Title)}
}

func (b *IDBody) values(c *check) []any {
	return []any{c.line("source", &b.Source), c.line("externalId", &b.ExternalID), c.address("externalUrl", b.ExternalURL)}
}

func (b *LinkBody) values(c *check) []any {
	return []any{c.line("sourceName", &b.SourceName), c.address("url", &b.URL), c.optional("externalId", b.ExternalID)}
}

func (b *RatingBody) values(c *check) []any {
	b.SourceName = strings.ToLower(b.SourceName)
	return []any{c.line("sourceName", &b.SourceName), b.Rating, b.VoteCount}
}

// Routes registers the operations on external titles, ids, links and ratings of series and books.
func Routes(a *httpapi.API, d *db.DB, publish events.Publish) {
	routes(a, d, publish, owner.Series, titles, names{list: "listSeriesAlternateTitles", add: "addSeriesAlternateTitle", remove: "removeSeriesAlternateTitle"}, (*TitleBody).values)
	routes(a, d, publish, owner.Series, ids, names{list: "listSeriesExternalIds", add: "addSeriesExternalId", remove: "removeSeriesExternalId"}, (*IDBody).values)
	routes(a, d, publish, owner.Series, links, names{list: "listSeriesExternalLinks", add: "addSeriesExternalLink", remove: "removeSeriesExternalLink"}, (*LinkBody).values)
	routes(a, d, publish, owner.Series, ratings, names{list: "listSeriesExternalRatings", add: "addSeriesExternalRating", remove: "removeSeriesExternalRating"}, (*RatingBody).values)
	routes(a, d, publish, owner.Book, ids, names{list: "listBookExternalIds", add: "addBookExternalId", remove: "removeBookExternalId"}, (*IDBody).values)
	routes(a, d, publish, owner.Book, links, names{list: "listBookExternalLinks", add: "addBookExternalLink", remove: "removeBookExternalLink"}, (*LinkBody).values)
	httpapi.Register(a, titles.operation(owner.Series, "PATCH", "/{referenceId}", "updateSeriesAlternateTitle", "Update an alternate title of a series", owner.Series.Writing),
		func(ctx context.Context, in *struct {
			TitleInput
			Body TitleChanges
		}) (*Title, error) {
			var c check
			label, title := c.line("label", in.Body.Label), c.line("title", in.Body.Title)
			if err := fault.InvalidFields(c.bad); err != nil {
				return nil, err
			}
			out, at, err := rename(ctx, d, in.ID, in.TitleID, label, title)
			if at != nil {
				publish(ctx, httpapi.TenantOf(ctx).ID, owner.Series.Updated(in.ID, at.SeriesID, at.LibraryID, titles.field))
			}
			return out, err
		})
}

// operation describes an operation on a kind of an owner.
func (k kind[T]) operation(o owner.Owner, method, path, id, summary, permission string) httpapi.Op {
	return httpapi.Group{Path: "/api/v1/" + o.Path + "/{id}/" + k.path, Tag: "References"}.Op(method, path, id, summary, permission)
}

// names are the ids of the operations on a kind of an owner.
type names struct{ list, add, remove string }

// routes registers a kind for an owner: B is the body of an insert, values returns its values in the order of the
// columns.
func routes[T, B any](a *httpapi.API, d *db.DB, publish events.Publish, o owner.Owner, k kind[T], names names, values func(*B, *check) []any) {
	httpapi.Register(a, k.operation(o, "GET", "", names.list, "List the "+strings.ToLower(k.what)+"s of a "+strings.ToLower(o.What)+" by name", o.Reading),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			httpapi.Paging
		}) (*httpapi.Page[T], error) {
			all, err := k.list(ctx, d, o, in.ID)
			if err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, all), nil
		})
	summary := "Add an " + strings.ToLower(k.what) + " to a " + strings.ToLower(o.What)
	if k.unique {
		summary += "; replaces the existing one of the same service"
	}
	add := k.operation(o, "POST", "", names.add, summary, o.Writing)
	add.Status = 201
	httpapi.Register(a, add,
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body B
		}) (*T, error) {
			var c check
			given := values(&in.Body, &c)
			if err := fault.InvalidFields(c.bad); err != nil {
				return nil, err
			}
			out, at, err := k.add(ctx, d, o, in.ID, given)
			if err == nil {
				publish(ctx, httpapi.TenantOf(ctx).ID, o.Updated(in.ID, at.SeriesID, at.LibraryID, k.field))
			}
			return out, err
		})
	summary = "Remove an " + strings.ToLower(k.what) + " from a " + strings.ToLower(o.What) + " by id"
	if k.unique {
		summary += " or service name"
	}
	httpapi.Register(a, k.operation(o, "DELETE", "/{referenceId}", names.remove, summary, o.Writing),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Key string `path:"referenceId" maxLength:"300" doc:"Id of the entry, or the name of its service (alternate titles have none)"`
		}) (*httpapi.None, error) {
			at, err := k.remove(ctx, d, o, in.ID, in.Key)
			if err == nil {
				publish(ctx, httpapi.TenantOf(ctx).ID, o.Updated(in.ID, at.SeriesID, at.LibraryID, k.field))
			}
			return nil, err
		})
}
