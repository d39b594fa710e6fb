package koreader

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/lazyregexp"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Authorized is the response for an authorized user.
type Authorized struct {
	Authorized string `json:"authorized" enum:"OK"`
}

// Place is the reader's position in a document.
type Place struct {
	Document   string  `json:"document"`
	Progress   string  `json:"progress" doc:"A page number, or for an e-book /body/DocFragment[N] followed by KOReader's position"`
	Percentage float64 `json:"percentage" minimum:"0" maximum:"1"`
	Device     string  `json:"device" doc:"Always empty"`
	DeviceID   string  `json:"device_id" doc:"Always empty"`
}

// NewPlace is the position that KOReader sends.
type NewPlace struct {
	Document   string          `json:"document" minLength:"1" maxLength:"64" doc:"KOReader's digest of the file"`
	Progress   json.RawMessage `json:"progress" doc:"A page as a number or string, or a position in an e-book"`
	Percentage float64         `json:"percentage" minimum:"0" maximum:"1"`
	Device     string          `json:"device,omitempty" maxLength:"200"`
	DeviceID   string          `json:"deviceId,omitempty" maxLength:"100" doc:"KOReader sends it as device_id"`
}

// Stored repeats the position in KOReader's format.
type Stored struct {
	Document   string          `json:"document"`
	Progress   json.RawMessage `json:"progress"`
	Percentage float64         `json:"percentage"`
	Device     string          `json:"device"`
	DeviceID   string          `json:"device_id"`
}

// Routes registers the operations of KOReader's progress sync. added is called after a task was added.
func Routes(a *httpapi.API, d *db.DB, added task.Added) {
	w := &wanter{database: d, added: added}
	op := httpapi.Group{Path: "/koreader", Tag: "KOReader"}.Op
	httpapi.Register(a, op("POST", "/users/create", "koreaderCreateUser", "Create a user; always refused, as users are created elsewhere", httpapi.Public),
		func(context.Context, *struct{}) (*httpapi.None, error) {
			return nil, fault.New(fault.Forbidden, "Users cannot be created here: log in with an API key as user name and any password")
		})
	httpapi.Register(a, op("GET", "/users/auth", "koreaderAuthorize", "Check the API key in x-auth-user; x-auth-key is ignored", httpapi.SignedIn),
		func(ctx context.Context, _ *struct{}) (*Authorized, error) {
			if err := enter(ctx, d); err != nil {
				return nil, err
			}
			w.want(ctx)
			return &Authorized{"OK"}, nil
		})
	httpapi.Register(a, op("GET", "/syncs/progress/{document}", "koreaderGetProgress", "Get the caller's position in a book", auth.ProgressRead),
		func(ctx context.Context, in *struct {
			Document string `path:"document" maxLength:"64"`
		}) (*Place, error) {
			p, err := place(ctx, d, in.Document)
			if unknown(err) {
				w.want(ctx)
			}
			return p, err
		})
	httpapi.Register(a, op("PUT", "/syncs/progress", "koreaderSetProgress", "Set the caller's position in a book; ignored if no book has the file, or several", auth.ProgressWrite),
		func(ctx context.Context, in *struct{ Body NewPlace }) (*Stored, error) {
			err := in.Body.store(ctx, d)
			if unknown(err) {
				w.want(ctx)
			}
			if unknown(err) || errors.Is(err, errAmbiguous) { // an error would stop KOReader from sending the rest of its queue
				err = nil
			}
			return (*Stored)(&in.Body), err
		})
}

// text returns the progress as text; it may be sent as a text or a number.
func (p *NewPlace) text() (string, error) {
	var s string
	if json.Unmarshal(p.Progress, &s) == nil {
		if s = strings.TrimSpace(s); s != "" && len(s) <= maxProgress {
			return s, nil
		}
	}
	var n json.Number
	if json.Unmarshal(p.Progress, &n) == nil && wholeNumber.MatchString(n.String()) {
		return n.String(), nil
	}
	return "", fault.Invalid("progress", "must be a page number or a position of at most %d bytes", maxProgress)
}

// maxProgress is the maximum length of a position in KOReader's format, in bytes.
const maxProgress = 2000

var wholeNumber = lazyregexp.New(`^\d{1,9}$`)

// wanter requests the digests of books that have none.
type wanter struct {
	database *db.DB
	added    task.Added
	asked    task.Once
}

// want queues the task if there may be something to do. A reader is waiting: a failure is only logged.
func (w *wanter) want(ctx context.Context) {
	tenant := httpapi.TenantOf(ctx).ID
	if err := w.asked.Add(ctx, w.database, w.added, tenant, queue); err != nil {
		slog.Warn("cannot queue the task for KOReader digests", "tenant", tenant, "error", err)
	}
}
