package taxonomy

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// IDInput names a series or book, or a genre or tag.
type IDInput struct {
	ID uuid.UUID `path:"id" format:"uuid"`
}

// TermInput names a genre or tag of a series or book.
type TermInput struct {
	IDInput
	TermID uuid.UUID `path:"termId" format:"uuid" doc:"Of the genre or tag"`
}

// ListInput names a series or book whose genres or tags are listed.
type ListInput struct {
	IDInput
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
	Remove []string `json:"remove,omitempty" maxItems:"200" doc:"Before what is added"`
}

// ChangeBody changes several series.
type ChangeBody struct {
	SeriesIDs []uuid.UUID `json:"seriesIds" nullable:"false" maxItems:"100" doc:"Ids that no series has are left out"`
	Changes
}

// BookChangeBody changes several books.
type BookChangeBody struct {
	BookIDs []uuid.UUID `json:"bookIds" nullable:"false" maxItems:"100" doc:"Ids that no book has are left out"`
	Changes
}

// Cleaned lists what was deleted.
type Cleaned struct {
	DeletedCount int      `json:"deletedCount" minimum:"0"`
	DeletedNames []string `json:"deletedNames" nullable:"false"`
}

// Routes registers the operations on genres and tags.
func Routes(a *httpapi.API, d *db.DB, publish task.Publish) {
	for _, k := range []kind{genres, tags} {
		k.routes(a, d, publish)
		changing(a, d, publish, set{k, ofSeries}, "changeAll"+k.what+"s", func(b ChangeBody) ([]uuid.UUID, Changes) { return b.SeriesIDs, b.Changes })
		changing(a, d, publish, set{k, ofBook}, "changeAllBook"+k.what+"s", func(b BookChangeBody) ([]uuid.UUID, Changes) { return b.BookIDs, b.Changes })
	}
	for _, o := range []*owner{ofSeries, ofBook} {
		set{genres, o}.routes(a, d, publish)
		set{tags, o}.routes(a, d, publish)
		replacing(a, d, publish, set{genres, o}, func(b GenresBody) []string { return b.Genres })
		replacing(a, d, publish, set{tags, o}, func(b TagsBody) []string { return b.Tags })
	}
}

var operation = httpapi.Group{Path: "/api/v1", Tag: "Genres and tags"}.Op

// routes registers the operations on a kind across all owners.
func (k kind) routes(a *httpapi.API, d *db.DB, publish task.Publish) {
	httpapi.Register(a, operation("GET", "/"+k.plural, "list"+k.what+"s", "The "+k.plural+" that series or books have, by name", auth.SeriesRead).Ahead(),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[book.Term], error) {
			page, total, err := k.list(ctx, d, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	httpapi.Register(a, operation("POST", "/"+k.plural+"/cleanup", "cleanUp"+k.what+"s", "Remove the "+k.plural+" that neither a series nor a book has any more", auth.SystemAdmin).ForAll(),
		func(ctx context.Context, _ *struct{}) (*Cleaned, error) {
			names, err := k.clean(ctx, d)
			return &Cleaned{len(names), append([]string{}, names...)}, err
		})
	httpapi.Register(a, operation("DELETE", "/"+k.plural+"/{id}", "delete"+k.what, "Take it from every series and book; a file that names it brings it back", auth.SystemAdmin),
		func(ctx context.Context, in *IDInput) (*httpapi.None, error) {
			met, err := k.remove(ctx, d, in.ID)
			if err == nil {
				publish(ctx, httpapi.TenantOf(ctx).ID, met...)
			}
			return nil, err
		})
}

// changing registers the operation that changes several owners; said returns the content of its body.
func changing[T any](a *httpapi.API, d *db.DB, publish task.Publish, s set, id string, said func(T) ([]uuid.UUID, Changes)) {
	many := map[*owner]string{ofSeries: "series", ofBook: "books"}[s.owner]
	httpapi.Register(a, operation("POST", "/"+s.path+"/bulk/"+s.plural, id, "Give several "+many+" "+s.plural+", and take others from them", s.writing),
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
				return nil, fault.Invalid("add", "name something to add or to remove")
			}
			at, err := s.change(ctx, d, ids, more, fewer)
			if err != nil {
				return nil, err
			}
			publish(ctx, httpapi.TenantOf(ctx).ID, s.events(at)...)
			return &book.BulkChanged{UpdatedCount: len(at), Message: fmt.Sprintf("Changed the %s of %d %s", s.plural, len(at), many)}, nil
		})
}

// routes registers the operations on one owner.
func (s set) routes(a *httpapi.API, d *db.DB, publish task.Publish) {
	at, one := "/"+s.path+"/{id}/"+s.plural, "a "+s.owner.table
	httpapi.Register(a, operation("GET", at, "list"+s.owner.what+s.kind.what+"s", "The "+s.plural+" of "+one+", by name", s.reading).Ahead(),
		func(ctx context.Context, in *ListInput) (*httpapi.Page[book.Term], error) {
			terms, err := s.of(ctx, d, in.ID)
			if err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, terms), nil
		})
	add := operation("POST", at, "add"+s.owner.what+s.kind.what, "Give "+one+" one more; the same again changes nothing", s.writing)
	add.Status = 201
	httpapi.Register(a, add,
		func(ctx context.Context, in *struct {
			IDInput
			Body AddBody
		}) (*book.Term, error) {
			if !book.Printable(&in.Body.Name) {
				return nil, fault.Invalid("name", "must hold printable characters")
			}
			out, met, err := s.add(ctx, d, in.ID, in.Body.Name)
			if err == nil {
				publish(ctx, httpapi.TenantOf(ctx).ID, s.events(met)...)
			}
			return out, err
		})
	httpapi.Register(a, operation("DELETE", at+"/{termId}", "remove"+s.owner.what+s.kind.what, "Take one from "+one, s.writing),
		func(ctx context.Context, in *TermInput) (*httpapi.None, error) {
			met, err := s.drop(ctx, d, in.ID, in.TermID)
			if err == nil {
				publish(ctx, httpapi.TenantOf(ctx).ID, s.events(met)...)
			}
			return nil, err
		})
}

// replacing registers the operation that sets all names of an owner.
func replacing[T any](a *httpapi.API, d *db.DB, publish task.Publish, s set, names func(T) []string) {
	httpapi.Register(a, operation("PUT", "/"+s.path+"/{id}/"+s.plural, "put"+s.owner.what+s.kind.what+"s",
		"Give a "+s.owner.table+" just these "+s.plural+"; lock them where what files name shall not be added again", s.writing),
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
