package scanner_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/testkit"
)

// A file that takes too long gets an error that says so, whether its reader stops or not; the others are read.
func TestFileTakesTooLong(t *testing.T) {
	r := newRig(t)
	for i, name := range []string{"deaf", "patient", "quick"} {
		testkit.WriteFile(t, r.folder, "S/"+name+".cbz", testkit.Comic(t, i, 1+i, ""))
	}
	forever := make(chan struct{})
	defer close(forever)
	deaf, patient := testkit.JPEG(t, 60, 90, 1), testkit.JPEG(t, 60, 90, 101)
	s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Publish: r.publish, Parallel: 2, Timeout: 5 * time.Second,
		Cover: func(ctx context.Context, _, _ uuid.UUID, _ []byte, _ string, _, _ int, image []byte) (string, error) {
			switch {
			case slices.Equal(image, deaf):
				<-forever
			case slices.Equal(image, patient):
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "", nil
		}}
	res := r.scanBy(s)
	if res.Status != "completed" || res.Processed != 3 || res.Errors != 2 {
		t.Errorf("%+v", res)
	}
	got := values[string](r, "select key || ' ' || coalesce(error_type, 'read') from book where tenant_id = app.tenant() order by key")
	if want := []string{"S/deaf.cbz timeout", "S/patient.cbz timeout", "S/quick.cbz read"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
