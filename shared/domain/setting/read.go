package setting

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// Value queues reading a setting of the entered tenant into the caller's batch. dst has the default at once and
// the tenant's value after the batch ran. A key that does not exist is a mistake in the program and panics.
func Value(b *pgx.Batch, key string, dst *string) {
	*dst = Default(key)
	db.Value(b, dst, "select value from setting where tenant_id = app.tenant() and key = $1", key)
}

// SQL is the value of a setting of the entered tenant, its default where there is none, as a text for a statement. A
// key that does not exist is a mistake in the program and panics.
func SQL(key string) string {
	return "coalesce((select value from setting where tenant_id = app.tenant() and key = '" + key + "'), '" + strings.ReplaceAll(Default(key), "'", "''") + "')"
}

// Default is the value of a setting that nobody has changed. A key that does not exist is a mistake in the program and
// panics.
func Default(key string) string {
	return defined(key).Default
}

func defined(key string) *definition {
	d := find(key)
	if d == nil {
		panic("setting " + key + " is not defined")
	}
	return d
}

// Bool is Value for a Boolean.
func Bool(b *pgx.Batch, key string, dst *bool) {
	parsed(b, key, dst, strconv.ParseBool)
}

// Int is Value for an Integer.
func Int(b *pgx.Batch, key string, dst *int64) {
	parsed(b, key, dst, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
}

func parsed[T any](b *pgx.Batch, key string, dst *T, parse func(string) (T, error)) {
	d := defined(key)
	v, err := parse(d.Default)
	if err != nil {
		panic("setting " + key + " is a " + d.Type)
	}
	*dst = v
	b.Queue("select value from setting where tenant_id = app.tenant() and key = $1", key).Query(func(rows pgx.Rows) error {
		stored, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(stored) == 0 {
			return err
		}
		// What was stored passed a check; should a later release have narrowed the type, the default holds.
		if v, err := parse(stored[0]); err == nil {
			*dst = v
		}
		return nil
	})
}
