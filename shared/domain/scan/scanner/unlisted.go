package scanner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
)

// tellUnlisted records the folders that could not be listed as errors of the scan, except folders that cannot contain
// books of the library. Their books stay unchanged, and the library does not count as looked at.
func (r *run) tellUnlisted(ctx context.Context) error {
	slices.Sort(r.at.Unlisted)
	r.at.Unlisted = slices.DeleteFunc(slices.Compact(r.at.Unlisted), func(folder string) bool { return !r.mayHoldBooks(folder) })
	if len(r.at.Unlisted) == 0 {
		return nil
	}
	texts := make([]string, len(r.at.Unlisted))
	for i, folder := range r.at.Unlisted {
		name := strings.TrimPrefix(folder, r.library.Prefix)
		texts[i] = clip(name, 400) + " cannot be listed; check its permissions. Its books stay unchanged"
		switch {
		case len(name) > scan.MaxPath-utf8.UTFMax: // it was cut, between two characters
			texts[i] = fmt.Sprintf("%s: the path is longer than %d bytes. Shorten the names of its folders; the file is skipped until then", clip(name, 400),
				scan.MaxPath)
		case unclear(name):
			texts[i] = clip(name, 400) + " cannot be listed: its name is not UTF-8 or contains control characters. Rename it"
		}
	}
	slog.Warn("folders of a library cannot be listed", "count", len(texts), "path", r.library.Path, "folders", texts[:min(len(texts), 5)], "tenant", r.tenant)
	var b pgx.Batch
	b.Queue(`update scan set unlisted = $2, error_count = error_count + cardinality(n.texts), errors = (n.texts || errors)[1:$4]
		from (select array(select t from unnest($3::text[]) t where t <> all(x.errors)) as texts
			from scan x where x.tenant_id = app.tenant() and x.id = $1 for update) n
		where tenant_id = app.tenant() and id = $1`, r.scanID, len(texts), texts, scan.ErrorsKept)
	return r.Database.Run(ctx, &b)
}

// noteTooMany stores the number of folders that could not be listed, if the scan fails because of them: no purge may
// follow.
func (r *run) noteTooMany(ctx context.Context, cause error) error {
	var many *blob.UnlistedError
	if !errors.As(cause, &many) {
		return nil
	}
	_, err := db.Exec(ctx, r.Database, "update scan set unlisted = $2 where tenant_id = app.tenant() and id = $1", r.scanID, len(many.Folders))
	return err
}

// mayHoldBooks reports whether a file in the folder could be a book of the library.
func (r *run) mayHoldBooks(folder string) bool {
	return library.MayHold(r.library.AllowedFormats, r.selected, strings.TrimPrefix(folder, r.library.Prefix))
}
