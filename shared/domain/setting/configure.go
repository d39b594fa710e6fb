package setting

import (
	"context"

	"github.com/longbox/longbox/shared/platform/db"
)

// Configure stores values by key, all or none; an error names the invalid one. Unknown keys are ignored. It returns how
// many were stored; the caller must invalidate caches.
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
