package scanner_test

import (
	"testing"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

// A file that cannot be read is left alone while it stays as it is, unless the setting says otherwise.
func TestFailedFilesAreTriedAgain(t *testing.T) {
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/good.cbz", testkit.Comic(t, 1, 1, ""))
	testkit.WriteFile(t, r.folder, "S/broken.cbz", []byte("no archive"))
	if res := r.scan("normal"); res.Errors != 1 {
		t.Fatalf("%+v", res)
	}
	for _, again := range []int64{0, 1} {
		if res := r.scan("normal"); res.Status != "completed" || res.Processed != 2 || res.Errors != again {
			t.Errorf("%d to be tried again: %+v", again, res)
		}
		if _, err := db.Exec(r.ctx(), r.db.App, `insert into setting (tenant_id, key, value) values (app.tenant(), 'scanner.retry_failed_files', 'true')
			on conflict do nothing`); err != nil {
			t.Fatal(err)
		}
	}
}
