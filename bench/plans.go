package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// seqScan matches a line of a plan with a sequential scan of a content table.
var seqScan = regexp.MustCompile(`Seq Scan on (book|series|progress|book_metadata|page_index|series_genre|series_tag)\b`)

// plans requests each route once while the server logs the plans of a new api process, and counts sequential scans of
// large tables. It thus checks the real queries with the real role.
func (s *system) plans(ctx context.Context, out *report, c *crowd, routes []string) (err error) {
	for _, sql := range []string{"load 'auto_explain'", "set auto_explain.log_min_duration = -1",
		"alter database longbox set session_preload_libraries = 'auto_explain'",
		"alter database longbox set auto_explain.log_min_duration = 0",
		"alter database longbox set auto_explain.log_nested_statements = on", // the search is in functions
		"alter database longbox set auto_explain.log_analyze = off"} {
		if _, err := s.admin.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	defer func() {
		_, e := s.admin.Exec(ctx, "alter database longbox reset all")
		err = errors.Join(err, e)
	}()
	log := filepath.Join(s.data(), "log", "postgres.log")
	before, err := os.Stat(log)
	if err != nil {
		return err
	}
	api, err := s.function(ctx, "api")
	if err != nil {
		return err
	}
	defer api.Stop()
	for _, route := range routes {
		if err := c.client.get(ctx, below(api.url, c.fill(route)))(); err != nil {
			return err
		}
	}
	api.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(500 * time.Millisecond): // The log comes through a pipe.
	}
	raw, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	text := string(raw[before.Size():])
	plans := strings.Count(text, "plan:")
	if plans < len(routes) {
		return fmt.Errorf("the log of PostgreSQL has %d plans for %d requests", plans, len(routes))
	}
	bad := seqScan.FindAllString(text, -1)
	for _, line := range bad {
		out.note("  %s", line)
	}
	out.info("plans looked at", float64(plans), "")
	out.atMost("sequential scans of large tables", float64(len(bad)), 0, "")
	return nil
}
