package scanner_test

import (
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/task"
)

// held checks that a scan was held for a good reason and removed nothing, confirms it as an administrator, and returns
// the result of the scan that follows.
func (w *world) held(before map[uuid.UUID]row, res result) (confirmed result) {
	live, gone := 0, 0
	now := w.books()
	for id, r := range before {
		if !r.Live {
			continue
		}
		live++
		if _, there := w.files[r.Key]; there {
			continue
		}
		gone++
		if n, is := now[id]; !is || !n.Live {
			w.t.Errorf("the scan was held, but %s is gone: %+v", r.Key, n)
		}
	}
	if res.Held < 10 || res.Held*2 <= int64(live) || res.Held > int64(gone) {
		w.t.Errorf("the scan was held for %d removals; of %d books %d are gone", res.Held, live, gone)
	}
	w.api(0, "POST", "/api/v1/libraries/"+w.library.String()+"/scan/confirm", nil, 200)
	newest := values[uuid.UUID](w.rig, "select id from scan where tenant_id = app.tenant() order by id desc limit 1")
	return w.finish(newest[0])
}

// unheld checks that a scan that was not held removed no more than allowed.
func (w *world) unheld(before, now map[uuid.UUID]row) {
	live, gone, came := 0, 0, 0
	for id, r := range before {
		if !r.Live {
			continue
		}
		live++
		if n, is := now[id]; !is || !n.Live {
			gone++
		}
	}
	for id := range now {
		if _, is := w.rows[id]; !is {
			came++
		}
	}
	if gone -= came; gone >= 10 && gone*2 > live {
		w.t.Errorf("the scan has removed %d of %d books, and has asked nobody", gone, live)
	}
}

// limited scans with the limit at the current number of books, plus more.
func (w *world) limited(more int) {
	w.noticed()
	w.idle()
	limit := w.live() + int64(more)
	w.exec("update tenant set max_books = $2 where id = $1", w.tenant, limit)
	w.broken = true // another scan finds what it refused
	res := w.finish(w.start(scan.Normal))
	if res.Status == task.Completed && res.Processed != res.Total {
		w.t.Errorf("a scan at the limit: %+v", res)
	}
	if n := w.live(); n > limit {
		w.t.Errorf("%d books are live, the limit is %d", n, limit)
	}
	w.exec("update tenant set max_books = null where id = $1", w.tenant)
}
