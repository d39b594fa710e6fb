package upload_test

import (
	"testing"

	"github.com/longbox/longbox/shared/domain/upload"
	"github.com/longbox/longbox/shared/testkit"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	testkit.Bounds[upload.Config](t, nil, map[string]testkit.Bound{
		"UPLOAD_MAX_BYTES":    {In: []string{"0", "858993459200"}, Out: []string{"-1", "858993459201"}}, // 800 GiB
		"UPLOAD_SINGLE_BYTES": {In: []string{"1", "5368709120"}, Out: []string{"0", "5368709121"}},      // 5 GiB
		"UPLOAD_LIFE":         {In: []string{"1s", "5m"}, Out: []string{"999ms", "5m1s"}},
	})
}
