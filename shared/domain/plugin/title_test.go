package plugin_test

import (
	"slices"
	"testing"

	"github.com/longbox/longbox/shared/domain/plugin"
	"github.com/longbox/longbox/shared/domain/task"
)

// A series with an id at the service is not matched by title: an entry with another id is another work.
func TestWhatHasAnIDIsFoundByNoTitle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, c := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	id := r.personal(admin, nil)
	first, _ := r.shelf("First", "11", 3)
	second, _ := r.shelf("Second", "", 2)
	c.Do("POST", user+"/"+id+"/enable", nil).Want(200)
	remote := []any{object{"externalId": "11", "title": "Called otherwise", "status": "reading", "progress": object{"volumes": 1}},
		object{"externalId": "99", "title": "First", "status": "completed"}, object{"externalId": "98", "title": "Second", "status": "completed"}}
	for range 2 { // in either order
		c.Do("PATCH", user+"/"+id+"/config", object{"config": object{"remote": remote, "_codex": object{"searchFallback": true}}}).Want(200)
		c.Do("POST", user+"/"+id+"/sync", nil).Want(200)
		out, err := r.run(task.UserPluginSync, r.runner.Sync)
		if err != nil {
			t.Fatal(err)
		}
		if res := out.(*plugin.SyncResult); res.Pulled != 3 || res.Matched != 2 {
			t.Errorf("%+v", res)
		}
		var ofFirst, ofSecond int
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), `select count(*) filter (where b.series_id = $1), count(*) filter (where b.series_id = $2)
			from progress p join book b on b.id = p.book_id where p.completed`, first, second).Scan(&ofFirst, &ofSecond); err != nil || ofFirst != 1 || ofSecond != 2 {
			t.Errorf("%d and %d books read, want 1 and 2, %v", ofFirst, ofSecond, err)
		}
		slices.Reverse(remote)
	}
}
