package setting

import (
	"context"

	"github.com/longbox/longbox/shared/platform/db"
)

// Configure stores values by key, all of them or, where one is not possible, none: then the error names it. Keys that
// there are no settings of are left out. It says how many were stored; whoever calls it must see to it that nothing
// remembered outlives that.
func Configure(ctx context.Context, d *db.DB, values map[string]Text, reason string) (int, error) {
	entries := make(SettingValues, 0, len(values))
	for _, d := range all() {
		if v, sent := values[d.Key]; sent {
			entries = append(entries, SettingValue{Key: d.Key, Value: v})
		}
	}
	writes, err := SettingUpdates{Settings: entries}.writes()
	if err != nil || len(writes) == 0 {
		return 0, err
	}
	_, err = store(ctx, d, writes, &reason)
	return len(writes), err
}
