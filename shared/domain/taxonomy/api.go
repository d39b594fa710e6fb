package taxonomy

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/owner"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// TermInput names a genre or tag of a series or book.
type TermInput struct {
	httpapi.IDInput
	TermID uuid.UUID `path:"termId" format:"uuid" doc:"Id of the genre or tag"`
}

// ListInput names a series or book whose genres or tags are listed.
type ListInput struct {
	httpapi.IDInput
	httpapi.Paging
}

// AddBody is a name to add to a series or book.
type AddBody struct {
	Name string `json:"name" minLength:"1" maxLength:"200"`
}

// GenresBody are all genres of a series or book.
type GenresBody struct {
	Genres []string `json:"genres" nullable:"false" maxItems:"200" doc:"Names of 1 to 200 characters"`
}

// TagsBody are all tags of a series or book.
type TagsBody struct {
	Tags []string `json:"tags" nullable:"false" maxItems:"200" doc:"Names of 1 to 200 characters"`
}

// Changes are names to add to and remove from several series or books.
type Changes struct {
	Add    []string `json:"add,omitempty" maxItems:"200"`
	Remove []string `json:"remove,omitempty" maxItems:"200" doc:"Names to remove, before others are added"`
}

// ChangeBody changes several series.
type ChangeBody struct {
	SeriesIDs []uuid.UUID `json:"seriesIds" nullable:"false" maxItems:"100" doc:"Unknown ids are ignored"`
	Changes
}

// BookChangeBody changes several books.
type BookChangeBody struct {
	BookIDs []uuid.UUID `json:"bookIds" nullable:"false" maxItems:"100" doc:"Unknown ids are ignored"`
	Changes
}

// Cleaned lists what was deleted.
type Cleaned struct {
	DeletedCount int      `json:"deletedCount" minimum:"0"`
	DeletedNames []string `json:"deletedNames" nullable:"false"`
}

// Routes registers the operations on genres and tags.
func Routes(a *httpapi.API, d *db.DB, publish events.Publish) {
	genres.routes(a, d, publish, "listGenres", "cleanUpGenres", "deleteGenre")
	tags.routes(a, d, publish, "listTags", "cleanUpTags", "deleteTag")

	ofSeries := func(b ChangeBody) ([]uuid.UUID, Changes) { return b.SeriesIDs, b.Changes }
	ofBooks := func(b BookChangeBody) ([]uuid.UUID, Changes) { return b.BookIDs, b.Changes }
	changing(a, d, publish, set{genres, owner.Series}, "changeAllGenres", ofSeries)
	changing(a, d, publish, set{genres, owner.Book}, "changeAllBookGenres", ofBooks)
	changing(a, d, publish, set{tags, owner.Series}, "changeAllTags", ofSeries)
	changing(a, d, publish, set{tags, owner.Book}, "changeAllBookTags", ofBooks)

	set{genres, owner.Series}.routes(a, d, publish, "listSeriesGenres", "addSeriesGenre", "removeSeriesGenre")
	set{genres, owner.Book}.routes(a, d, publish, "listBookGenres", "addBookGenre", "removeBookGenre")
	set{tags, owner.Series}.routes(a, d, publish, "listSeriesTags", "addSeriesTag", "removeSeriesTag")
	set{tags, owner.Book}.routes(a, d, publish, "listBookTags", "addBookTag", "removeBookTag")

	genresOf := func(b GenresBody) []string { return b.Genres }
	tagsOf := func(b TagsBody) []string { return b.Tags }
	replacing(a, d, publish, set{genres, owner.Series}, "putSeriesGenres", genresOf)
	replacing(a, d, publish, set{genres, owner.Book}, "putBookGenres", genresOf)
	replacing(a, d, publish, set{tags, owner.Series}, "putSeriesTags", tagsOf)
	replacing(a, d, publish, set{tags, owner.Book}, "putBookTags", tagsOf)
}

var operation = httpapi.Group{Path: "/api/v1", Tag: "Genres and tags"}.Op

// routes registers the operations on a kind across all owners.
func (k kind) routes(a *httpapi.API, d *db.DB, publish events.Publish, list, cleanUp, remove string) {
	httpapi.Register(a, operation("GET", "/"+k.plural, list, "List the "+k.plural+" of series and books by name", auth.SeriesRead).Ahead(),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[book.Term], error) {
			page, total, err := k.list(ctx, d, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	httpapi.Register(a, operation("POST", "/"+k.plural+"/cleanup", cleanUp, "Delete the "+k.plural+" that no series and no book has any more", auth.SystemAdmin).OnlyIfSeesAll(),
		func(ctx context.Context, _ *struct{}) (*Cleaned, error) {
			names, err := k.clean(ctx, d)
			return &Cleaned{len(names), append([]string{}, names...)}, err
		})
	httpapi.Register(a, operation("DELETE", "/"+k.plural+"/{id}", remove, "Delete a "+k.table+" and remove it from all series and books; files that name it add it again", auth.SystemAdmin),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			met, err := k.remove(ctx, d, in.ID, removeRows, time.Now().Add(removeTime))
			publish(ctx, httpapi.TenantOf(ctx).ID, met...)
			return nil, err
		})
}

// changing registers the operation that changes several owners; said returns the content of its body.
func changing[T any](a *httpapi.API, d *db.DB, publish events.Publish, s set, id string, said func(T) ([]uuid.UUID, Changes)) {
	httpapi.Register(a, operation("POST", "/"+s.Path+"/bulk/"+s.plural, id, "Add "+s.plural+" to several "+s.Path+" and remove others", s.Writing),
		func(ctx context.Context, in *struct{ Body T }) (*book.BulkChanged, error) {
			ids, changes := said(in.Body)
			more, err := clean("add", changes.Add)
			if err != nil {
				return nil, err
			}
			fewer, err := clean("remove", changes.Remove)
			if err != nil {
				return nil, err
			}
			if len(more)+len(fewer) == 0 {
				return nil, fault.Invalid("add", "is required, unless remove names something")
			}
			at, err := s.change(ctx, d, ids, more, fewer)
			if err != nil {
				return nil, err
			}
			publish(ctx, httpapi.TenantOf(ctx).ID, s.events(at)...)
			return &book.BulkChanged{UpdatedCount: len(at), Message: fmt.Sprintf("Changed the %s of %d %s", s.plural, len(at), s.Path)}, nil
		})
}

// routes registers the operations on one owner.
func (s set) routes(a *httpapi.API, d *db.DB, publish events.Publish, list, add, remove string) {
	at, one := "/"+s.Path+"/{id}/"+s.plural, "a "+s.Table
	httpapi.Register(a, operation("GET", at, list, "List the "+s.plural+" of "+one+" by name", s.Reading).Ahead(),
		func(ctx context.Context, in *ListInput) (*httpapi.Page[book.Term], error) {
			terms, err := s.of(ctx, d, in.ID)
			if err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, terms), nil
		})
	adding := operation("POST", at, add, "Add a "+s.table+" to "+one+"; adding an existing one changes nothing", s.Writing)
	adding.Status = 201
	httpapi.Register(a, adding,
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body AddBody
		}) (*book.Term, error) {
			if !naming.Printable(&in.Body.Name) {
				return nil, fault.Invalid("name", "must contain visible characters and no control characters")
			}
			out, met, err := s.add(ctx, d, in.ID, in.Body.Name)
			if err == nil {
				publish(ctx, httpapi.TenantOf(ctx).ID, s.events(met)...)
			}
			return out, err
		})
	httpapi.Register(a, operation("DELETE", at+"/{termId}", remove, "Remove a "+s.table+" from "+one, s.Writing),
		func(ctx context.Context, in *TermInput) (*httpapi.None, error) {
			met, err := s.drop(ctx, d, in.ID, in.TermID)
			if err == nil {
				publish(ctx, httpapi.TenantOf(ctx).ID, s.events(met)...)
			}
			return nil, err
		})
}

// replacing registers the operation that sets all names of an owner.
func replacing[T any](a *httpapi.API, d *db.DB, publish events.Publish, s set, id string, names func(T) []string) {
	httpapi.Register(a, operation("PUT", "/"+s.Path+"/{id}/"+s.plural, id,
		"Replace the "+s.plural+" of a "+s.Table+"; lock them to keep files from adding others again", s.Writing),
		func(ctx context.Context, in *struct {
			ListInput
			Body T
		}) (*httpapi.Page[book.Term], error) {
			given, err := clean(s.plural, names(in.Body))
			if err != nil {
				return nil, err
			}
			terms, met, err := s.replace(ctx, d, in.ID, given)
			if err != nil {
				return nil, err
			}
			publish(ctx, httpapi.TenantOf(ctx).ID, s.events(met)...)
			return httpapi.All(ctx, in.Paging, terms), nil
		})
}
