package setting

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// Value adds the read of a setting of the entered tenant to the caller's batch. dst has the default at once, and the
// tenant's value after the batch has run. An unknown key is a programming error and panics.
func Value(b *pgx.Batch, key string, dst *string) {
	*dst = Default(key)
	db.Value(b, dst, "select value from setting where tenant_id = app.tenant() and key = $1", key)
}

// SQL returns an SQL expression for the value of a setting of the entered tenant as text, or its default. An unknown
// key is a programming error and panics.
func SQL(key string) string {
	return "coalesce((select value from setting where tenant_id = app.tenant() and key = '" + key + "'), '" + strings.ReplaceAll(Default(key), "'", "''") + "')"
}

// Default returns the default of a setting. An unknown key is a programming error and panics.
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
		// Stored values were validated; if a later release has narrowed the type, the default applies.
		if v, err := parse(stored[0]); err == nil {
			*dst = v
		}
		return nil
	})
}
