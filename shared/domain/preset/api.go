package preset

import (
	"context"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// NewBody is a filter to store.
type NewBody struct {
	Scope  string `json:"scope" enum:"list,search"`
	Target string `json:"target" enum:"series,books"`
	Body
}

// Routes registers the operations on the caller's stored filters.
func Routes(a *httpapi.API, d *db.DB) {
	op := httpapi.Group{Path: "/api/v1/filter-presets", Tag: "Filter presets"}.For(httpapi.SignedIn)
	httpapi.Register(a, op("GET", "", "listFilterPresets", "List the caller's filter presets by name"),
		func(ctx context.Context, in *struct {
			httpapi.Paging
			Scope     string `query:"scope" enum:"list,search"`
			Target    string `query:"target" enum:"series,books"`
			LibraryID string `query:"libraryId" format:"uuid" doc:"Only filter presets for this library or for all libraries"`
		}) (*httpapi.Page[Preset], error) {
			page, total, err := list(ctx, d, in.Scope, in.Target, httpapi.OptionalID(in.LibraryID), in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	add := op("POST", "", "createFilterPreset", "Create a filter preset")
	add.Status = 201
	httpapi.Register(a, add,
		func(ctx context.Context, in *struct{ Body NewBody }) (*Preset, error) {
			return create(ctx, d, in.Body.Scope, in.Body.Target, &in.Body.Body)
		})
	httpapi.Register(a, op("GET", "/{id}", "getFilterPreset", "Get a filter preset of the caller"),
		func(ctx context.Context, in *httpapi.IDInput) (*Preset, error) { return get(ctx, d, in.ID) })
	httpapi.Register(a, op("PUT", "/{id}", "updateFilterPreset", "Replace the content of a filter preset; its scope and target stay unchanged"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body Body
		}) (*Preset, error) {
			return replace(ctx, d, in.ID, &in.Body)
		})
	httpapi.Register(a, op("DELETE", "/{id}", "deleteFilterPreset", "Delete a filter preset"),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			return nil, remove(ctx, d, in.ID)
		})
}
