package pdfcache

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Started is a clean-up by the setting.
type Started struct {
	MaxAgeDays int64     `json:"maxAgeDays" doc:"Value of the setting pdf_cache.max_age_days: older pages are removed; 0 means that none are"`
	Message    string    `json:"message"`
	TaskID     uuid.UUID `json:"taskId" format:"uuid"`
}

// Deleted is what was deleted when the response is sent.
type Deleted struct {
	Result
	BytesReclaimedHuman string    `json:"bytesReclaimedHuman"`
	Complete            bool      `json:"complete" doc:"If false, the counts are preliminary, and the task is still running or, if error is not null, has failed"`
	Error               *string   `json:"error"`
	TaskID              uuid.UUID `json:"taskId" format:"uuid"`
}

func op(method, path, id, summary string) httpapi.Op {
	return httpapi.Op{Method: method, Path: "/api/v1/admin/pdf-cache" + path, ID: id, Summary: summary, Tag: "Maintenance", Permission: auth.SystemAdmin}.OnlyIfSeesAll()
}

// Routes registers the operations on stored pages of PDF documents; some have two names.
func Routes(a *httpapi.API, d *db.DB, c Config, added task.Added) {
	httpapi.Register(a, op("GET", "", "getPdfCache", "Get statistics of the PDF cache"),
		func(ctx context.Context, _ *struct{}) (*Stats, error) {
			p, err := pages(ctx, d, c)
			if err != nil {
				return nil, err
			}
			return &Stats{Handles: handles(), Pages: *p}, nil
		})
	httpapi.Register(a, op("GET", "/stats", "getPdfCachePages", "Get statistics of the cached pages of PDF documents"),
		func(ctx context.Context, _ *struct{}) (*Pages, error) { return pages(ctx, d, c) })
	httpapi.Register(a, op("GET", "/handles", "getPdfHandles", "Get statistics of the open PDF documents; always none"),
		func(context.Context, *struct{}) (*Handles, error) { h := handles(); return &h, nil })
	httpapi.Register(a, op("DELETE", "/handles", "closePdfHandles", "Close all open PDF documents; there are never any"),
		func(context.Context, *struct{}) (*Closed, error) { return &Closed{}, nil })
	httpapi.Register(a, op("DELETE", "/handles/{id}", "closePdfHandle", "Close the open PDF document of a book; there is never one"),
		func(ctx context.Context, in *httpapi.IDInput) (*Closed, error) { return closeOne(ctx, d, in.ID) })
	for path, id := range map[string]string{"/pages": "deletePdfPages", "": "deletePdfCache"} {
		httpapi.Register(a, op("DELETE", path, id, "Delete all cached pages of PDF documents, and wait some seconds for the result"),
			func(ctx context.Context, _ *struct{}) (*Deleted, error) { return remove(ctx, d, added) })
	}
	for path, id := range map[string]string{"/pages/cleanup": "startPdfPageCleanup", "/cleanup": "startPdfCacheCleanup"} {
		httpapi.Register(a, op("POST", path, id, "Start the task that deletes cached pages of PDF documents older than pdf_cache.max_age_days"),
			func(ctx context.Context, _ *struct{}) (*Started, error) { return start(ctx, d, added) })
	}
}

func start(ctx context.Context, d *db.DB, added task.Added) (*Started, error) {
	var b pgx.Batch
	var out Started
	setting.Int(&b, setting.PDFCacheDays, &out.MaxAgeDays)
	if err := task.Add(&b, Making(false), &out.TaskID); err != nil {
		return nil, err
	}
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	out.Message = "The clean-up is queued"
	if out.MaxAgeDays == 0 {
		out.Message += "; it removes nothing, since pdf_cache.max_age_days is 0"
	}
	return &out, nil
}

func remove(ctx context.Context, d *db.DB, added task.Added) (*Deleted, error) {
	started, err := task.Start(ctx, d, added, Making(true), task.Everything(), "")
	if err != nil {
		return nil, err
	}
	done, err := task.Await(ctx, d, started.TaskID)
	if err != nil {
		return nil, err
	}
	out := &Deleted{Complete: done.Status == task.Completed, TaskID: started.TaskID}
	if err := done.Read(&out.Result); err != nil {
		return nil, err
	}
	if !out.Complete {
		out.Error = done.LastError
	}
	out.BytesReclaimedHuman = human(out.BytesReclaimed)
	return out, nil
}
