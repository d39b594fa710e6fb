package upload

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// File is a file to upload.
type File struct {
	Path        string `json:"path" maxLength:"900" doc:"Path relative to the library's folder, for example Series/Series 001.cbz"`
	Size        int64  `json:"size" minimum:"1" doc:"Size in bytes; exactly this many must be sent"`
	ContentType string `json:"contentType,omitempty" maxLength:"100" doc:"Media type to send; defaults to that of the file name extension"`
}

// BeginInput lists the files of one request.
type BeginInput struct {
	ID   uuid.UUID `path:"id" format:"uuid"`
	Body struct {
		Files     []File `json:"files" minItems:"1" maxItems:"100" nullable:"false"`
		Overwrite bool   `json:"overwrite,omitempty" doc:"Replace existing books"`
	}
}

// Input names a multipart upload.
type Input struct {
	ID       uuid.UUID `path:"id" format:"uuid"`
	UploadID uuid.UUID `path:"uploadId" format:"uuid"`
}

// Begun holds the upload addresses in the order of the files.
type Begun struct {
	Files []Address `json:"files" nullable:"false"`
}

// Address is where to send one file: with url in one PUT, otherwise in parts that are completed afterwards.
type Address struct {
	Path      string            `json:"path"`
	Method    string            `json:"method" enum:"PUT"`
	URL       *string           `json:"url" nullable:"true" doc:"Address for the whole file, if it is uploaded in one PUT"`
	Headers   map[string]string `json:"headers" nullable:"false" doc:"Headers to send unchanged with each PUT; Content-Length is the size. If a repeated PUT is answered with 412, the file exists, perhaps from your first attempt"`
	UploadID  *uuid.UUID        `json:"uploadId" nullable:"true" doc:"Id of a multipart upload: complete or abort it within a day"`
	PartSize  *int64            `json:"partSize" nullable:"true" doc:"Size in bytes of every part except the last"`
	Parts     []PartAddress     `json:"parts" nullable:"true"`
	ExpiresAt time.Time         `json:"expiresAt" doc:"When the addresses expire; getUpload returns new ones for missing parts"`
}

// PartAddress is where to send one part.
type PartAddress struct {
	Number int    `json:"number"`
	Offset int64  `json:"offset" doc:"Offset in bytes of the part in the file"`
	Size   int64  `json:"size"`
	URL    string `json:"url"`
}

// ListInput names a library.
type ListInput struct {
	ID uuid.UUID `path:"id" format:"uuid"`
	httpapi.Paging
}

// Open is a multipart upload that was neither completed nor aborted.
type Open struct {
	UploadID  uuid.UUID `json:"uploadId" db:"id"`
	Path      string    `json:"path" db:"key"`
	Size      int64     `json:"size" db:"size"`
	CreatedAt time.Time `json:"createdAt" db:"created_at"`
	ExpiresAt time.Time `json:"expiresAt" db:"expires_at" doc:"When the store discards the parts received"`
}

// Completed is an uploaded file.
type Completed struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// Uploader starts and completes uploads.
type Uploader struct {
	Database *db.DB
	Store    *blob.Store
	Config   Config
}

// Routes registers the operations on uploads.
func (u *Uploader) Routes(a *httpapi.API) {
	op := func(method, path, id, summary string, status int) httpapi.Op {
		return httpapi.Op{Method: method, Path: "/api/v1/libraries/{id}/uploads" + path, ID: id, Summary: summary, Tag: "Uploads",
			Status: status, Permission: auth.LibrariesWrite, SeesAll: true}
	}
	httpapi.Register(a, op("POST", "", "beginUploads", "Create addresses to upload files to", 201),
		func(ctx context.Context, in *BeginInput) (*Begun, error) { return u.begin(ctx, in) })
	httpapi.Register(a, op("GET", "", "listUploads", "List the open multipart uploads, oldest first", 0),
		func(ctx context.Context, in *ListInput) (*httpapi.Page[Open], error) { return u.list(ctx, in) })
	httpapi.Register(a, op("GET", "/{uploadId}", "getUpload", "Get new addresses for the missing parts of a multipart upload", 0),
		func(ctx context.Context, in *Input) (*Address, error) { return u.resume(ctx, in) })
	httpapi.Register(a, op("POST", "/{uploadId}/complete", "completeUpload", "Complete a multipart upload: assemble the file from its parts", 0),
		func(ctx context.Context, in *Input) (*Completed, error) { return u.complete(ctx, in) })
	httpapi.Register(a, op("DELETE", "/{uploadId}", "abortUpload", "Abort a multipart upload", 0),
		func(ctx context.Context, in *Input) (*httpapi.None, error) { return nil, u.abort(ctx, in) })
}
