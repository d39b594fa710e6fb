package ingest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/domain/ingest"
	"github.com/longbox/longbox/shared/platform/fault"
)

func record(event, bucket, key string) string {
	return fmt.Sprintf(`{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"eu-central-1","eventTime":"2026-11-21T10:00:00.000Z","eventName":%q,
		"userIdentity":{"principalId":"AWS:X"},"s3":{"s3SchemaVersion":"1.0","configurationId":"books","bucket":{"name":%q,"arn":"arn:aws:s3:::b"},
		"object":{"key":%q,"size":10,"eTag":"0123","versionId":"v1","sequencer":"0055AED6DCD90281E5"}}}`, event, bucket, key)
}

func records(all ...string) string { return `{"Records":[` + strings.Join(all, ",") + `]}` }

func bridged(kind, bucket, key string) string {
	return fmt.Sprintf(`{"version":"0","id":"1","detail-type":%q,"source":"aws.s3","account":"1","time":"2026-11-21T10:00:00Z","region":"eu",
		"resources":[],"detail":{"version":"0","bucket":{"name":%q},"object":{"key":%q,"size":5,"etag":"e","sequencer":"00"},"reason":"PutObject"}}`, kind, bucket, key)
}

func TestParseEvent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		want []ingest.Object
	}{
		"put":              {records(record("ObjectCreated:Put", "b", "a/1.cbz")), []ingest.Object{{"b", "a/1.cbz"}}},
		"multipart, copy":  {records(record("ObjectCreated:CompleteMultipartUpload", "b", "1"), record("ObjectCreated:Copy", "c", "2")), []ingest.Object{{"b", "1"}, {"c", "2"}}},
		"delete":           {records(record("ObjectRemoved:Delete", "b", "1")), []ingest.Object{{"b", "1"}}},
		"delete marker":    {records(record("ObjectRemoved:DeleteMarkerCreated", "b", "1")), []ingest.Object{{"b", "1"}}},
		"expired":          {records(record("LifecycleExpiration:Delete", "b", "1")), []ingest.Object{{"b", "1"}}},
		"with s3: before":  {records(record("s3:ObjectCreated:Put", "b", "1")), []ingest.Object{{"b", "1"}}},
		"encoded":          {records(record("ObjectCreated:Put", "b", "a+b/%E6%97%A5%2B1+%2325%25.cbz")), []ingest.Object{{"b", "a b/日+1 #25%.cbz"}}},
		"of the gateway":   {strings.Replace(records(record("s3:ObjectCreated:Put", "b", "a+b/100%.cbz")), `:::b"`, `:::/b/a+b/100%.cbz"`, 1), []ingest.Object{{"b", "a+b/100%.cbz"}}},
		"bridged":          {bridged("Object Created", "b", "a+b/100%.cbz"), []ingest.Object{{"b", "a+b/100%.cbz"}}},
		"bridged deletion": {bridged("Object Deleted", "b", "日 1"), []ingest.Object{{"b", "日 1"}}},
		"bridged tags":     {bridged("Object Tags Added", "b", "1"), nil},
		"tags":             {records(record("ObjectTagging:Put", "b", "1"), record("ObjectAcl:Put", "b", "1"), record("Replication:x", "b", "1")), nil},
		"test":             {`{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2026-11-21T10:00:00.000Z","Bucket":"b","RequestId":"r","HostId":"h"}`, nil},
		"no records":       {`{"Records":[]}`, nil},
		"longest names":    {bridged("Object Created", strings.Repeat("b", 255), strings.Repeat("k", 1024)), []ingest.Object{{strings.Repeat("b", 255), strings.Repeat("k", 1024)}}},
		"most records":     {records(slices.Repeat([]string{record("ObjectCreated:Put", "b", "1")}, 1000)...), slices.Repeat([]ingest.Object{{"b", "1"}}, 1000)},
		"largest":          {`{"Records":[],"x":"` + strings.Repeat("x", 1<<20-len(`{"Records":[],"x":""}`)) + `"}`, nil},
	} {
		got, err := ingest.ParseEvent([]byte(c.body))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
	for name, body := range map[string]string{
		"nothing":         "",
		"no JSON":         "hello",
		"another message": `{"tenant":"1","task":"2"}`,
		"a list":          `[]`,
		"no key":          records(record("ObjectCreated:Put", "b", "")),
		"no bucket":       records(record("ObjectCreated:Put", "", "1")),
		"bad encoding":    records(record("ObjectCreated:Put", "b", "%zz")),
		"NUL":             records(record("ObjectCreated:Put", "b", "a%00")),
		"no UTF-8":        records(record("ObjectCreated:Put", "b", "a%ff")),
		"long key":        records(record("ObjectCreated:Put", "b", strings.Repeat("k", 1025))),
		"NUL in a bucket": strings.Replace(bridged("Object Created", "b?", "k"), "?", `\u0000`, 1),
		"long bucket":     bridged("Object Created", strings.Repeat("b", 256), "k"),
		"many":            records(slices.Repeat([]string{record("ObjectCreated:Put", "b", "1")}, 1001)...),
		"large":           `{"Records":[],"x":"` + strings.Repeat("x", 1<<20-len(`{"Records":[],"x":""}`)+1) + `"}`,
	} {
		if got, err := ingest.ParseEvent([]byte(body)); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func FuzzParseEvent(f *testing.F) {
	f.Add([]byte(records(record("ObjectCreated:Put", "b", "a+b%2F1.cbz"))))
	f.Add([]byte(bridged("Object Created", "b", "a b/1.cbz")))
	f.Add([]byte(`{"Event":"s3:TestEvent"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		objects, err := ingest.ParseEvent(body)
		if err != nil && !fault.Is(err, fault.BadRequest) {
			t.Errorf("%v is no BadRequest", err)
		}
		for _, o := range objects {
			if o.Bucket == "" || o.Key == "" || len(o.Key) > 1024 || !utf8.ValidString(o.Key) || strings.ContainsRune(o.Key, 0) {
				t.Errorf("object %q", o)
			}
		}
	})
}
