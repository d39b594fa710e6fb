package plugin

import (
	"context"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// JobInput names a job of a library.
type JobInput struct {
	ID    uuid.UUID `path:"id" format:"uuid" doc:"Id of the library"`
	JobID uuid.UUID `path:"jobId" format:"uuid"`
}

func (s *service) jobRoutes(a *httpapi.API) {
	reading := httpapi.Group{Path: "/api/v1", Tag: "Libraries"}.For(auth.LibrariesRead)
	writing := func(method, path, id, summary string) httpapi.Op { // a job covers all of the library
		return httpapi.Op{Method: method, Path: "/api/v1/libraries/{id}/jobs" + path, ID: id, Summary: summary, Tag: "Libraries", Permission: auth.LibrariesWrite}.OnlyIfSeesAll()
	}
	httpapi.Register(a, reading("GET", "/library-jobs/metadata-refresh/field-groups", "listFieldGroups", "List the field groups that a metadata refresh job can use"),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[FieldGroup], error) {
			return httpapi.All(ctx, in.Paging, fieldGroups), nil
		})
	httpapi.Register(a, reading("GET", "/libraries/{id}/jobs", "listLibraryJobs", "List the jobs of a library, oldest first"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			httpapi.Paging
		}) (*httpapi.Page[Job], error) {
			page, total, err := listJobs(ctx, s.Database, in.ID, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	httpapi.Register(a, reading("GET", "/libraries/{id}/jobs/{jobId}", "getLibraryJob", "Get a job with the result of its last run"),
		func(ctx context.Context, in *JobInput) (*Job, error) { return getJob(ctx, s.Database, in.ID, in.JobID) })
	create := writing("POST", "", "createLibraryJob", "Create a scheduled job that refreshes the metadata of a library from a plugin")
	create.Status = 201
	httpapi.Register(a, create, func(ctx context.Context, in *struct {
		httpapi.IDInput
		Body NewJob
	}) (*Job, error) {
		j, err := in.Body.job(in.ID)
		if err != nil {
			return nil, err
		}
		return addJob(ctx, s.Database, j)
	})
	httpapi.Register(a, writing("PATCH", "/{jobId}", "updateLibraryJob", "Update a job; fields that are not sent and a run in progress stay unchanged"),
		func(ctx context.Context, in *struct {
			JobInput
			Body JobChange
		}) (*Job, error) {
			if err := in.Body.check(); err != nil {
				return nil, err
			}
			return changeJob(ctx, s.Database, in.ID, in.JobID, &in.Body)
		})
	httpapi.Register(a, writing("DELETE", "/{jobId}", "deleteLibraryJob", "Delete a job and cancel its run"),
		func(ctx context.Context, in *JobInput) (*httpapi.None, error) {
			told, err := removeJob(ctx, s.Database, in.ID, in.JobID)
			if err == nil && len(told) > 0 {
				s.Publish(ctx, httpapi.TenantOf(ctx).ID, told...)
			}
			return nil, err
		})
	httpapi.Register(a, writing("POST", "/{jobId}/run-now", "runLibraryJob", "Run a job now; works for disabled jobs, too"),
		func(ctx context.Context, in *JobInput) (*task.Started, error) { return s.runNow(ctx, in.ID, in.JobID) })
	httpapi.Register(a, writing("POST", "/{jobId}/dry-run", "tryLibraryJob", "Dry-run a job: request a sample from the plugin and return what would be written"),
		func(ctx context.Context, in *struct {
			JobInput
			Body *DryRunBody `required:"false"`
		}) (*DryRun, error) {
			if in.Body == nil {
				in.Body = &DryRunBody{}
			}
			return s.dryRun(ctx, in.ID, in.JobID, in.Body)
		})
}

func (s *service) runNow(ctx context.Context, library, id uuid.UUID) (*task.Started, error) {
	fresh := uuid.Must(uuid.NewV7())
	started, err := startJob(ctx, s.Database, &library, id, fresh, nil)
	if err != nil {
		return nil, err
	}
	if started != fresh {
		return nil, fault.New(fault.Conflict, "The job is already pending or running as task %s", started)
	}
	s.Added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	return &task.Started{TaskID: fresh, Message: "The job is queued"}, nil
}

// StartJob starts a run of a job, or finds the unfinished one, and calls added; priority may be nil. NotFound if there
// is no such job.
func StartJob(ctx context.Context, d *db.DB, added task.Added, job uuid.UUID, priority *int) (*task.Started, error) {
	started, err := startJob(ctx, d, nil, job, uuid.Must(uuid.NewV7()), priority)
	if err != nil {
		return nil, err
	}
	added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	return &task.Started{TaskID: started, Message: "The task is queued"}, nil
}
