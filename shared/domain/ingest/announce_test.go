package ingest_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/ingest"
	"github.com/longbox/longbox/shared/platform/queue"
	"github.com/longbox/longbox/shared/testkit"
)

// announced is a complete notification record.
type announced struct {
	EventName string `json:"eventName"`
	S3        struct {
		Object struct {
			Key       string `json:"key"`
			Size      int64  `json:"size"`
			ETag      string `json:"eTag"`
			VersionID string `json:"versionId"`
			Sequencer string `json:"sequencer"`
		} `json:"object"`
	} `json:"s3"`
}

// store is a store with notifications.
type store struct {
	*testing.T
	*testkit.Announcer
	queue *queue.Queue
}

// TestAnnouncements checks a real store's notifications against what ParseEvent expects. `make conformance` runs it
// against every supported store. A skipped check is something that a store's notifications lack, and on which nothing
// depends.
func TestAnnouncements(t *testing.T) {
	a := testkit.StartAnnouncer(t, "events-"+uuid.NewString()[:8])
	q := queue.Open(a.Queue, a.Queue.ObjectURL)
	run := func(name string, test func(x *store)) {
		t.Run(name, func(t *testing.T) { test(&store{t, a, q}) })
	}
	const key = "a b/日本 #1 + 100% é&=?;:@,'(1).cbz"
	run("any key", func(x *store) { x.put(key, "x") })
	run("key: space as +", func(x *store) {
		if got := x.put("a b+c", "x").S3.Object.Key; got != "a+b%2Bc" {
			x.Skipf("%q", got)
		}
	})
	run("removal", func(x *store) {
		if _, err := x.SDK.DeleteObject(x.Context(), &s3.DeleteObjectInput{Bucket: &x.Bucket, Key: aws.String(key)}); err != nil {
			x.Fatal(err)
		}
		if got := x.next(key); !strings.Contains(got.EventName, "ObjectRemoved:Delete") {
			x.Errorf("announced as %s", got.EventName)
		}
	})
	run("size and eTag", func(x *store) {
		got, head := x.put("tag", "four"), x.head("tag")
		if o := got.S3.Object; o.Size != 4 || o.ETag != strings.Trim(*head.ETag, `"`) {
			x.Skipf("%d bytes, eTag %q; the object's is %s", o.Size, o.ETag, *head.ETag)
		}
	})
	run("sequencer grows", func(x *store) {
		before, after := x.put("order", "1").S3.Object.Sequencer, x.put("order", "2").S3.Object.Sequencer
		if width := max(len(before), len(after)); width == 0 || pad(before, width) >= pad(after, width) {
			x.Skipf("%q, then %q", before, after)
		}
	})
	run("copy", func(x *store) {
		x.put("from", "x")
		if _, err := x.SDK.CopyObject(x.Context(), &s3.CopyObjectInput{Bucket: &x.Bucket, Key: aws.String(key), CopySource: aws.String(x.Bucket + "/from")}); err != nil {
			x.Fatal(err)
		}
		if got := x.next(key); !strings.Contains(got.EventName, "ObjectCreated:Copy") {
			x.Errorf("announced as %s", got.EventName)
		}
	})
	run("upload in parts", (*store).parts)
	run("removal of many", func(x *store) {
		x.put("one", "1")
		x.put("two", "2")
		if _, err := x.SDK.DeleteObjects(x.Context(), &s3.DeleteObjectsInput{Bucket: &x.Bucket, Delete: &types.Delete{
			Objects: []types.ObjectIdentifier{{Key: aws.String("one")}, {Key: aws.String("two")}}}}); err != nil {
			x.Fatal(err)
		}
		_, first := x.receive()
		_, second := x.receive()
		if got := []ingest.Object{first, second}; !slices.Contains(got, ingest.Object{Bucket: x.Bucket, Key: "one"}) || !slices.Contains(got, ingest.Object{Bucket: x.Bucket, Key: "two"}) {
			x.Errorf("announced: %v", got)
		}
	})
	run("versionId, delete marker", func(x *store) {
		if _, err := x.SDK.PutBucketVersioning(x.Context(), &s3.PutBucketVersioningInput{Bucket: &x.Bucket,
			VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}}); err != nil {
			x.Skip("no versions: ", err)
		}
		if got, head := x.put("version", "x"), x.head("version"); got.S3.Object.VersionID != *head.VersionId {
			x.Errorf("versionId %q, the object's is %q", got.S3.Object.VersionID, *head.VersionId)
		}
		if _, err := x.SDK.DeleteObject(x.Context(), &s3.DeleteObjectInput{Bucket: &x.Bucket, Key: aws.String("version")}); err != nil {
			x.Fatal(err)
		}
		if got := x.next("version"); !strings.Contains(got.EventName, "ObjectRemoved:DeleteMarkerCreated") {
			x.Errorf("announced as %s", got.EventName)
		}
	})
}

func pad(s string, width int) string { return strings.Repeat("0", width-len(s)) + s }

// put uploads an object and returns its notification.
func (x *store) put(key, data string) announced {
	x.Helper()
	if err := x.Store.Put(x.Context(), x.Bucket, key, "application/zip", []byte(data)); err != nil {
		x.Fatal(err)
	}
	return x.next(key)
}

func (x *store) head(key string) *s3.HeadObjectOutput {
	x.Helper()
	head, err := x.SDK.HeadObject(x.Context(), &s3.HeadObjectInput{Bucket: &x.Bucket, Key: &key})
	if err != nil {
		x.Fatal(err)
	}
	return head
}

func (x *store) parts() {
	key := "parts/1 (a+b).cbz"
	begun, err := x.SDK.CreateMultipartUpload(x.Context(), &s3.CreateMultipartUploadInput{Bucket: &x.Bucket, Key: &key})
	if err != nil {
		x.Fatal(err)
	}
	part, err := x.SDK.UploadPart(x.Context(), &s3.UploadPartInput{Bucket: &x.Bucket, Key: &key, UploadId: begun.UploadId, PartNumber: aws.Int32(1),
		Body: bytes.NewReader([]byte("part"))})
	if err != nil {
		x.Fatal(err)
	}
	if _, err := x.SDK.CompleteMultipartUpload(x.Context(), &s3.CompleteMultipartUploadInput{Bucket: &x.Bucket, Key: &key, UploadId: begun.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{PartNumber: aws.Int32(1), ETag: part.ETag}}}}); err != nil {
		x.Fatal(err)
	}
	if got := x.next(key); !strings.Contains(got.EventName, "ObjectCreated:CompleteMultipartUpload") {
		x.Errorf("announced as %s", got.EventName)
	}
}

// next returns the next notification, which must be for the key.
func (x *store) next(key string) announced {
	x.Helper()
	record, object := x.receive()
	if want := (ingest.Object{Bucket: x.Bucket, Key: key}); object != want {
		x.Fatalf("%q announced %q, want %q", record.S3.Object.Key, object, want)
	}
	return record
}

// receive takes the next notification from the queue.
func (x *store) receive() (announced, ingest.Object) {
	x.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		got, err := x.queue.Receive(x.Context(), 1, 5*time.Second, time.Minute)
		if err != nil {
			x.Fatal(err)
		}
		if len(got) == 0 {
			continue
		}
		if err := x.queue.Delete(x.Context(), got...); err != nil {
			x.Fatal(err)
		}
		objects, err := ingest.ParseEvent([]byte(got[0].Body))
		if err != nil {
			x.Fatalf("%v: %s", err, got[0].Body)
		}
		if len(objects) == 0 { // a test message, sent when notifications are configured
			continue
		}
		var n struct{ Records []announced }
		if err := json.Unmarshal([]byte(got[0].Body), &n); err != nil || len(n.Records) != 1 || len(objects) != 1 {
			x.Fatalf("%v, want one record: %s", err, got[0].Body)
		}
		return n.Records[0], objects[0]
	}
	x.Fatal("no notification in 30 s")
	return announced{}, ingest.Object{}
}
