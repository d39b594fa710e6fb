package preference

import (
	"context"
	"encoding/json"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// KeyInput names a preference.
type KeyInput struct {
	Key string `path:"key" maxLength:"255" doc:"Dotted key, for example ui.theme"`
}

// Deleted says whether there was a value to reset.
type Deleted struct {
	Deleted bool   `json:"deleted"`
	Message string `json:"message"`
}

// Updated is the response to setting several preferences.
type Updated struct {
	Updated     int          `json:"updated"`
	Preferences []Preference `json:"preferences"`
}

// Routes registers the operations on the caller's own preferences.
func Routes(a *httpapi.API, d *db.DB) {
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/user/preferences", ID: "listPreferences",
		Summary: "List the caller's preferences", Tag: "Preferences", Permission: httpapi.SignedIn},
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[Preference], error) {
			page, total, err := list(ctx, d, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/user/preferences/{key}", ID: "getPreference",
		Summary: "Get a preference of the caller", Tag: "Preferences", Permission: httpapi.SignedIn},
		func(ctx context.Context, in *KeyInput) (*Preference, error) { return get(ctx, d, in.Key) })
	httpapi.Register(a, httpapi.Op{Method: "PUT", Path: "/api/v1/user/preferences/{key}", ID: "setPreference",
		Summary: "Set a preference of the caller", Tag: "Preferences", Permission: httpapi.SignedIn},
		func(ctx context.Context, in *struct {
			KeyInput
			Body struct {
				Value json.RawMessage `json:"value" doc:"Any JSON value"`
			}
		}) (*Preference, error) {
			if err := checkKey(in.Key); err != nil {
				return nil, err
			}
			if err := checkValue("value", in.Body.Value); err != nil {
				return nil, err
			}
			stored, err := set(ctx, d, "value", map[string]json.RawMessage{in.Key: in.Body.Value})
			if err != nil {
				return nil, err
			}
			return &stored[0], nil
		})
	httpapi.Register(a, httpapi.Op{Method: "PUT", Path: "/api/v1/user/preferences", ID: "setPreferences",
		Summary: "Set several preferences of the caller; either all are set or none", Tag: "Preferences", Permission: httpapi.SignedIn},
		func(ctx context.Context, in *struct {
			Body struct {
				Preferences map[string]json.RawMessage `json:"preferences" maxProperties:"1000" doc:"Values by key"`
			}
		}) (*Updated, error) {
			if err := checkAll(in.Body.Preferences); err != nil {
				return nil, err
			}
			stored, err := set(ctx, d, "preferences", in.Body.Preferences)
			if err != nil {
				return nil, err
			}
			return &Updated{Updated: len(stored), Preferences: stored}, nil
		})
	httpapi.Register(a, httpapi.Op{Method: "DELETE", Path: "/api/v1/user/preferences/{key}", ID: "resetPreference",
		Summary: "Reset a preference of the caller to its default", Tag: "Preferences", Permission: httpapi.SignedIn},
		func(ctx context.Context, in *KeyInput) (*Deleted, error) {
			deleted, err := remove(ctx, d, in.Key)
			if err != nil {
				return nil, err
			}
			if !deleted {
				return &Deleted{Message: "The preference was not set"}, nil
			}
			return &Deleted{Deleted: true, Message: "The preference is back at its default"}, nil
		})
}
