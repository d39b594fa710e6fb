package blob_test

import (
	"testing"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/testkit"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	address := testkit.Bound{In: []string{"", "http://127.0.0.1:9000", "https://s3.example.org"}, Out: []string{"127.0.0.1:9000", "localhost:9000", "s3.example.org", "http://", "ftp://s3.example.org"}}
	testkit.Bounds[blob.Config](t, map[string]string{"MEDIA_BUCKET": "media"}, map[string]testkit.Bound{
		"LIBRARY_S3_ENDPOINT": address, "LIBRARY_S3_PUBLIC_ENDPOINT": address, "MEDIA_S3_ENDPOINT": address,
	})
}
