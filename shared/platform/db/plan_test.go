package db_test

import (
	"testing"

	"github.com/longbox/longbox/shared/platform/db"
)

func TestKeepsPlansApart(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"15.8 (Debian 15.8-0+deb12u1)": false, "15.9": true, "15.14 (Debian 15.14-0+deb12u1)": true, "16.4": false, "16.5": true,
		"17.0": false, "17.1 (Ubuntu 17.1-1)": true, "17.10": true, "18.0": true, "18beta1": true, "15": false, "": true} {
		if got := db.KeepsPlansApart(version); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}
