package release

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Alias is another name under which releases of a series are announced.
type Alias struct {
	ID         uuid.UUID `json:"id" db:"id"`
	SeriesID   uuid.UUID `json:"seriesId" db:"series_id"`
	Alias      string    `json:"alias" db:"alias"`
	Normalized string    `json:"normalized" db:"normalized" doc:"Lower case, without punctuation; unique within a series"`
	Source     string    `json:"source" db:"source" doc:"manual, metadata, or another source that has provided the alias"`
	CreatedAt  time.Time `json:"createdAt" db:"created_at"`
}

// AddedAlias is a new or existing alias.
type AddedAlias struct {
	Alias
	fresh     bool
	libraryID uuid.UUID
}

// StatusCode is 201 for a new alias.
func (a *AddedAlias) StatusCode() int {
	if a.fresh {
		return 201
	}
	return 200
}

// AliasBody is an alias to add.
type AliasBody struct {
	Alias  string  `json:"alias" minLength:"1" maxLength:"500"`
	Source *string `json:"source,omitempty" minLength:"1" maxLength:"50" nullable:"true" doc:"Null means manual"`
}

// mostAliases is the maximum number per series. maxAlias is the maximum size of a normalized alias in bytes: an index
// stores it.
const (
	mostAliases = 200
	maxAlias    = 2500
)

const aliasColumns = "a.id, a.series_id, a.alias, a.normalized, a.source, a.created_at"

// normalize returns a name in lower case, with one space for each run of other characters than letters and digits.
func normalize(name string) string {
	return strings.Join(strings.FieldsFunc(norm.NFKC.String(strings.ToLower(norm.NFKC.String(name))), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}), " ")
}

func aliases(ctx context.Context, d *db.DB, series uuid.UUID) (out []Alias, err error) {
	return out, progress.OfSeries(ctx, d, series, func(b *pgx.Batch) {
		db.All(b, &out, "select "+aliasColumns+" from series_alias a where a.tenant_id = app.tenant() and a.series_id = $1 order by a.normalized", series)
	})
}

// addAlias adds an alias, or finds the existing one that differs only in punctuation.
func addAlias(ctx context.Context, d *db.DB, series uuid.UUID, body *AliasBody) (*AddedAlias, error) {
	source := "manual"
	if body.Source != nil {
		source = *body.Source
	}
	if !naming.Printable(&body.Alias) || normalize(body.Alias) == "" {
		return nil, fault.Invalid("alias", "must contain letters or digits")
	}
	if !naming.Printable(&source) {
		return nil, fault.Invalid("source", "must contain visible characters and no control characters")
	}
	var b pgx.Batch
	var library *uuid.UUID
	var before, fresh *Alias
	name := normalize(body.Alias)
	// The lock serializes writers.
	db.Value(&b, &library, "select library_id from series where tenant_id = app.tenant() and id = $1 for no key update", series)
	db.One(&b, &before, "select "+aliasColumns+" from series_alias a where a.tenant_id = app.tenant() and a.series_id = $1 and a.normalized = $2", series, name)
	db.One(&b, &fresh, `insert into series_alias as a (tenant_id, id, series_id, alias, normalized, source) select app.tenant(), gen_random_uuid(), s.id, $2, $3, $4 from series s
		where s.tenant_id = app.tenant() and s.id = $1 and (select count(*) from series_alias where tenant_id = app.tenant() and series_id = $1) < $5
		on conflict do nothing returning `+aliasColumns, series, body.Alias, name, source, mostAliases)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	switch {
	case library == nil:
		return nil, fault.Missing("Series")
	case before != nil:
		return &AddedAlias{Alias: *before, libraryID: *library}, nil
	case fresh == nil:
		return nil, fault.New(fault.Conflict, "The series already has %d aliases, the most it can have; delete one first", mostAliases)
	}
	return &AddedAlias{*fresh, true, *library}, nil
}

// removeAlias deletes an alias, and returns the library of its series.
func removeAlias(ctx context.Context, d *db.DB, series, id uuid.UUID) (library uuid.UUID, err error) {
	var removed *uuid.UUID
	err = progress.OfSeries(ctx, d, series, func(b *pgx.Batch) {
		db.Value(b, &removed, `delete from series_alias a using series s where a.tenant_id = app.tenant() and a.series_id = $1 and a.id = $2
			and s.tenant_id = app.tenant() and s.id = a.series_id returning s.library_id`, series, id)
	})
	if err == nil && removed == nil {
		err = fault.Missing("Alias")
	}
	if err != nil {
		return library, err
	}
	return *removed, nil
}
