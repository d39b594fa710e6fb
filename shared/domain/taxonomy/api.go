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

// IDInput names a series, or a genre or tag.
type IDInput struct {
	ID uuid.UUID `path:"id" format:"uuid"`
}

// TermInput names a genre or tag of a series.
type TermInput struct {
	IDInput
	TermID uuid.UUID `path:"termId" format:"uuid" doc:"Of the genre or tag"`
}

// ListInput names a series whose genres or tags are listed.
type ListInput struct {
	IDInput
	httpapi.Paging
}

// AddBody is what a series gets.
type AddBody struct {
	Name string `json:"name" minLength:"1" maxLength:"200"`
}

// GenresBody is all that a series shall have.
type GenresBody struct {
	Genres []string `json:"genres" nullable:"false" maxItems:"200" doc:"Names of 1 to 200 characters"`
}

// TagsBody is all that a series shall have.
type TagsBody struct {
	Tags []string `json:"tags" nullable:"false" maxItems:"200" doc:"Names of 1 to 200 characters"`
}

// ChangeBody is what several series get and lose.
type ChangeBody struct {
	SeriesIDs []uuid.UUID `json:"seriesIds" nullable:"false" maxItems:"100" doc:"Ids that no series has are left out"`
	Add       []string    `json:"add,omitempty" maxItems:"200"`
	Remove    []string    `json:"remove,omitempty" maxItems:"200" doc:"Before what is added"`
}

// Cleaned says what has gone.
type Cleaned struct {
	DeletedCount int      `json:"deletedCount" minimum:"0"`
	DeletedNames []string `json:"deletedNames" nullable:"false"`
}

// Routes adds the operations on genres and tags.
func Routes(a *httpapi.API, d *db.DB, publish task.Publish) {
	for _, k := range []kind{genres, tags} {
		k.routes(a, d, publish)
		k.ofSeries(a, d, publish)
	}
	replacing(a, d, publish, genres, func(b GenresBody) []string { return b.Genres })
	replacing(a, d, publish, tags, func(b TagsBody) []string { return b.Tags })
}

func operation(method, path, id, summary, permission string) httpapi.Op {
	return httpapi.Op{Method: method, Path: "/api/v1" + path, ID: id, Summary: summary, Tag: "Genres and tags", Permission: permission}
}

// routes adds what concerns all series.
func (k kind) routes(a *httpapi.API, d *db.DB, publish task.Publish) {
	httpapi.Register(a, operation("GET", "/"+k.plural, "list"+k.what+"s", "The "+k.plural+" that series have, by name", auth.SeriesRead),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[book.Term], error) {
			page, total, err := k.list(ctx, d, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	httpapi.Register(a, operation("POST", "/"+k.plural+"/cleanup", "cleanUp"+k.what+"s", "Remove the "+k.plural+" that no series has any more", auth.SystemAdmin).ForAll(),
		func(ctx context.Context, _ *struct{}) (*Cleaned, error) {
			names, err := k.clean(ctx, d)
			return &Cleaned{len(names), append([]string{}, names...)}, err
		})
	httpapi.Register(a, operation("DELETE", "/"+k.plural+"/{id}", "delete"+k.what, "Take it from every series; a file that names it brings it back", auth.SystemAdmin),
		func(ctx context.Context, in *IDInput) (*httpapi.None, error) {
			met, err := k.remove(ctx, d, in.ID)
			if err == nil {
				publish(ctx, httpapi.TenantOf(ctx).ID, met...)
			}
			return nil, err
		})
	httpapi.Register(a, operation("POST", "/series/bulk/"+k.plural, "changeAll"+k.what+"s", "Give several series "+k.plural+", and take others from them", auth.SeriesWrite),
		func(ctx context.Context, in *struct{ Body ChangeBody }) (*book.BulkChanged, error) {
			more, err := clean("add", in.Body.Add)
			if err != nil {
				return nil, err
			}
			fewer, err := clean("remove", in.Body.Remove)
			if err != nil {
				return nil, err
			}
			if len(more)+len(fewer) == 0 {
				return nil, fault.Invalid("add", "name something to add or to remove")
			}
			at, err := k.change(ctx, d, in.Body.SeriesIDs, more, fewer)
			if err != nil {
				return nil, err
			}
			publish(ctx, httpapi.TenantOf(ctx).ID, k.events(at)...)
			return &book.BulkChanged{UpdatedCount: len(at), Message: fmt.Sprintf("Changed the %s of %d series", k.plural, len(at))}, nil
		})
}

// ofSeries adds what concerns one series.
func (k kind) ofSeries(a *httpapi.API, d *db.DB, publish task.Publish) {
	at := "/series/{id}/" + k.plural
	httpapi.Register(a, operation("GET", at, "listSeries"+k.what+"s", "The "+k.plural+" of a series, by name", auth.SeriesRead),
		func(ctx context.Context, in *ListInput) (*httpapi.Page[book.Term], error) {
			terms, err := k.of(ctx, d, in.ID)
			if err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, terms), nil
		})
	add := operation("POST", at, "addSeries"+k.what, "Give a series one more; the same again changes nothing", auth.SeriesWrite)
	add.Status = 201
	httpapi.Register(a, add,
		func(ctx context.Context, in *struct {
			IDInput
			Body AddBody
		}) (*book.Term, error) {
			if !book.Printable(&in.Body.Name) {
				return nil, fault.Invalid("name", "must hold printable characters")
			}
			out, met, err := k.add(ctx, d, in.ID, in.Body.Name)
			if err == nil {
				publish(ctx, httpapi.TenantOf(ctx).ID, k.events(met)...)
			}
			return out, err
		})
	httpapi.Register(a, operation("DELETE", at+"/{termId}", "removeSeries"+k.what, "Take one from a series", auth.SeriesWrite),
		func(ctx context.Context, in *TermInput) (*httpapi.None, error) {
			met, err := k.drop(ctx, d, in.ID, in.TermID)
			if err == nil {
				publish(ctx, httpapi.TenantOf(ctx).ID, k.events(met)...)
			}
			return nil, err
		})
}

// replacing adds the operation that gives a series just the names of its body.
func replacing[T any](a *httpapi.API, d *db.DB, publish task.Publish, k kind, names func(T) []string) {
	httpapi.Register(a, operation("PUT", "/series/{id}/"+k.plural, "putSeries"+k.what+"s",
		"Give a series just these "+k.plural+"; lock them where what its files name shall not be added again", auth.SeriesWrite),
		func(ctx context.Context, in *struct {
			ListInput
			Body T
		}) (*httpapi.Page[book.Term], error) {
			given, err := clean(k.plural, names(in.Body))
			if err != nil {
				return nil, err
			}
			terms, met, err := k.replace(ctx, d, in.ID, given)
			if err != nil {
				return nil, err
			}
			publish(ctx, httpapi.TenantOf(ctx).ID, k.events(met)...)
			return httpapi.All(ctx, in.Paging, terms), nil
		})
}
