package setting

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

const tag = "Settings"

// KeyInput names a setting.
type KeyInput struct {
	Key string `path:"key" maxLength:"255" doc:"Key of the setting, for example application.name"`
}

// SettingUpdate is a new value and, for the history, the reason.
type SettingUpdate struct {
	Value        Text    `json:"value"`
	ChangeReason *string `json:"changeReason,omitempty" nullable:"true" maxLength:"500" doc:"Reason to record in the history"`
}

// SettingUpdates are new values: all are stored or none.
type SettingUpdates struct {
	Settings     SettingValues `json:"settings,omitempty"`
	Updates      SettingValues `json:"updates,omitempty" doc:"Same as settings"`
	ChangeReason *string       `json:"changeReason,omitempty" nullable:"true" maxLength:"500" doc:"Reason to record in the history"`
}

type handlers struct {
	database *db.DB
	bump     events.AccessChanged
}

// Routes registers the operations on settings. bump is called after a change, to invalidate caches.
func Routes(a *httpapi.API, d *db.DB, bump events.AccessChanged) {
	h := &handlers{d, bump}
	op := httpapi.Group{Path: "/api/v1/admin/settings", Tag: tag}.For(auth.SystemAdmin)
	httpapi.Register(a, op("GET", "", "listSettings", "List all settings by key"), h.list)
	httpapi.Register(a, op("POST", "/bulk", "updateSettings", "Update several settings; either all are updated or none"), h.bulk)
	httpapi.Register(a, op("GET", "/{key}", "getSetting", "Get a setting"), h.get)
	httpapi.Register(a, op("PUT", "/{key}", "updateSetting", "Update a setting"), h.update)
	httpapi.Register(a, op("POST", "/{key}/reset", "resetSetting", "Reset a setting to its default"), h.reset)
	httpapi.Register(a, op("GET", "/{key}/history", "listSettingHistory", "List the changes of a setting, newest first"), h.history)
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/settings/public", ID: "getPublicSettings",
		Summary: "Get the settings that every user may see, by key", Tag: tag, Permission: httpapi.SignedIn}, h.public)
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/settings/branding", ID: "getBranding",
		Summary: "Get the branding that the sign-in page shows", Tag: tag, Permission: httpapi.Public}, h.branding)
}

func (h *handlers) list(ctx context.Context, in *struct {
	httpapi.Paging
	Category string `query:"category" maxLength:"100" doc:"Only settings of this category"`
}) (*httpapi.Page[Setting], error) {
	records, since, err := written(ctx, h.database, nil)
	if err != nil {
		return nil, err
	}
	out := []Setting{}
	for i := range all() {
		d := &all()[i]
		if in.Category != "" && !strings.EqualFold(in.Category, d.Category) {
			continue
		}
		out = append(out, d.from(records, since))
	}
	return httpapi.All(ctx, in.Paging, out), nil
}

func (h *handlers) get(ctx context.Context, in *KeyInput) (*Setting, error) {
	d, err := known(in.Key)
	if err != nil {
		return nil, err
	}
	records, since, err := written(ctx, h.database, []string{d.Key})
	if err != nil {
		return nil, err
	}
	return new(d.from(records, since)), nil
}

func (h *handlers) update(ctx context.Context, in *struct {
	KeyInput
	Body SettingUpdate
}) (*Setting, error) {
	d, err := known(in.Key)
	if err != nil {
		return nil, err
	}
	value, err := in.Body.Value.read(d)
	if err != nil {
		return nil, fault.Invalid("value", "%s", err)
	}
	return h.one(ctx, write{d, value}, in.Body.ChangeReason)
}

func (h *handlers) reset(ctx context.Context, in *KeyInput) (*Setting, error) {
	d, err := known(in.Key)
	if err != nil {
		return nil, err
	}
	return h.one(ctx, write{d, d.Default}, new("Reset to default"))
}

func (h *handlers) one(ctx context.Context, w write, reason *string) (*Setting, error) {
	out, err := h.write(ctx, []write{w}, reason)
	if err != nil {
		return nil, err
	}
	return &out[0], nil
}

func (h *handlers) write(ctx context.Context, writes []write, reason *string) ([]Setting, error) {
	out, err := store(ctx, h.database, writes, reason)
	if err != nil {
		return nil, err
	}
	h.bump(ctx, httpapi.TenantOf(ctx).ID)
	return out, nil
}

func (h *handlers) bulk(ctx context.Context, in *struct{ Body SettingUpdates }) (*httpapi.Page[Setting], error) {
	if len(in.Body.Settings)+len(in.Body.Updates) == 0 {
		return nil, fault.Invalid("settings", forms)
	}
	writes, err := in.Body.writes()
	if err != nil {
		return nil, err
	}
	out, err := h.write(ctx, writes, in.Body.ChangeReason)
	if err != nil {
		return nil, err
	}
	return httpapi.All(ctx, httpapi.Paging{Page: 1, PageSize: httpapi.MaxPageSize}, out), nil
}

func (h *handlers) history(ctx context.Context, in *struct {
	KeyInput
	httpapi.Paging
}) (*httpapi.Page[Change], error) {
	d, err := known(in.Key)
	if err != nil {
		return nil, err
	}
	rows, total, err := history(ctx, h.database, d, in.Paging)
	if err != nil {
		return nil, err
	}
	return httpapi.NewPage(ctx, in.Paging, rows, total), nil
}

func (h *handlers) public(ctx context.Context, _ *struct{}) (*map[string]Public, error) {
	keys := []string{}
	for _, d := range all() {
		if d.Public {
			keys = append(keys, d.Key)
		}
	}
	records, since, err := written(ctx, h.database, keys)
	if err != nil {
		return nil, err
	}
	out := map[string]Public{}
	for _, k := range keys {
		out[k] = Public{k, find(k).from(records, since).Value}
	}
	return &out, nil
}

func (h *handlers) branding(ctx context.Context, _ *struct{}) (*Branding, error) {
	var b pgx.Batch
	var out Branding
	Value(&b, ApplicationName, &out.ApplicationName)
	if err := h.database.Run(ctx, &b); err != nil {
		return nil, err
	}
	return &out, nil
}

func known(key string) (*definition, error) {
	if d := find(key); d != nil {
		return d, nil
	}
	return nil, fault.New(fault.NotFound, "There is no setting %q", shorten(key))
}
