package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/google/uuid"
)

// patience is the duration after which a scan counts as stuck.
const patience = 5 * time.Minute

// addLibrary creates a library over a folder of the library root.
func (s *system) addLibrary(ctx context.Context, api *function, name, folder string) (uuid.UUID, error) {
	return newClient(s.token).addLibrary(ctx, api, object{"name": name, "path": filepath.Join(s.books, folder), "bookStrategy": "metadata_first"})
}

func (c *client) addLibrary(ctx context.Context, api *function, library object) (uuid.UUID, error) {
	var lib struct {
		ID uuid.UUID `json:"id"`
	}
	err := c.call(ctx, http.MethodPost, api.url+"/api/v1/libraries", library, &lib)
	return lib.ID, err
}

// scan scans a library and returns the duration, in seconds by the database's clock, from the request to the last
// analysed book.
func (s *system) scan(ctx context.Context, api *function, library uuid.UUID, books int) (float64, error) {
	seconds, err := s.scanAny(ctx, api, library, books)
	if err == nil {
		err = s.complete(ctx, library, books)
	}
	return seconds, err
}

// scanAny is scan without checking the books.
func (s *system) scanAny(ctx context.Context, api *function, library uuid.UUID, books int) (float64, error) {
	if err := newClient(s.token).call(ctx, http.MethodPost, api.url+"/api/v1/libraries/"+library.String()+"/scan", nil, nil); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the scan of %d books has not ended after %v", books, patience))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var status string
		var seconds *float64
		var failure *string
		err := s.admin.QueryRow(ctx, `select status, extract(epoch from completed_at - created_at)::float8, last_error from task
			where tenant_id = $1 and library_id = $2 and type = 'scan_library' order by created_at desc limit 1`, s.tenant, library).
			Scan(&status, &seconds, &failure)
		switch {
		case err != nil:
			return 0, fmt.Errorf("scan: %w", err)
		case status == "completed":
			return *seconds, nil
		case status != "pending" && status != "running":
			reason := "no reason given"
			if failure != nil {
				reason = *failure
			}
			return 0, fmt.Errorf("the scan is %s: %s", status, reason)
		}
		select {
		case <-ctx.Done():
			return 0, errors.Join(context.Cause(ctx), s.unfinished(library))
		case <-tick.C:
		}
	}
}

// unfinished describes a library's tasks that did not complete.
func (s *system) unfinished(library uuid.UUID) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var tasks string
	err := s.admin.QueryRow(ctx, `select coalesce(string_agg(format('%s %s, done %s, %s open children, attempt %s, lease until %s, due %s: %s',
		type, status, done, open_children, attempts, lease_until, scheduled_for, last_error), '; '), 'none')
		from task where tenant_id = $1 and library_id = $2 and status <> 'completed'`, s.tenant, library).Scan(&tasks)
	if err != nil {
		return err
	}
	return fmt.Errorf("tasks that did not complete: %s", tasks)
}

// complete checks that every book exists and is analysed without an error.
func (s *system) complete(ctx context.Context, library uuid.UUID, books int) error {
	var good int
	err := s.admin.QueryRow(ctx, `select count(*) from book where tenant_id = $1 and library_id = $2 and analyzed
		and error_type is null and deleted_at is null and page_count > 0`, s.tenant, library).Scan(&good)
	if err == nil && good != books {
		err = fmt.Errorf("after the scan %d of %d books are complete", good, books)
	}
	return err
}
