package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/testkit"
)

// target is the store under test: TEST_S3_ENDPOINT with TEST_S3_ACCESS_KEY and TEST_S3_SECRET_KEY, else the gateway.
// `make conformance` runs this suite against every supported store and prints what each supports. A skipped test is a
// feature that the store lacks, and without which Longbox works.
type target struct {
	*testing.T
	blob.Config
	store  *blob.Store
	sdk    *s3.Client
	bucket string
}

func newTarget(t *testing.T) *target {
	cfg := blob.Config{LibraryEndpoint: os.Getenv("TEST_S3_ENDPOINT"), Region: "us-east-1", PathStyle: true}
	if cfg.LibraryEndpoint == "" {
		cfg.LibraryEndpoint = testkit.StartS3(t).Config.LibraryEndpoint
	} else {
		t.Setenv("AWS_ACCESS_KEY_ID", os.Getenv("TEST_S3_ACCESS_KEY"))
		t.Setenv("AWS_SECRET_ACCESS_KEY", os.Getenv("TEST_S3_SECRET_KEY"))
	}
	x := &target{T: t, Config: cfg, store: cfg.Library(), bucket: "t-" + uuid.NewString()[:13]}
	x.sdk = s3.New(s3.Options{Region: cfg.Region, UsePathStyle: true, BaseEndpoint: &cfg.LibraryEndpoint,
		Credentials: credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
		// Without it the SDK adds checksums that not every store supports.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired})
	if _, err := x.sdk.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &x.bucket}); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *target) put(key string, data string) blob.Object {
	x.Helper()
	if err := x.store.Put(x.Context(), x.bucket, key, "application/zip", []byte(data)); err != nil {
		x.Fatal(err)
	}
	found, err := x.store.Look(x.Context(), x.bucket, []string{key})
	if err != nil || len(found) != 1 {
		x.Fatalf("%s is not listed: %v %v", key, found, err)
	}
	return found[0]
}

// send uses a URL from Presign.
func (x *target) send(u blob.PutRequest, life time.Duration, body string, change func(*http.Request)) int {
	x.Helper()
	address, err := x.store.Presign(x.Context(), u, life)
	if err != nil {
		x.Fatal(err)
	}
	req, err := http.NewRequestWithContext(x.Context(), http.MethodPut, address, strings.NewReader(body))
	if err != nil {
		x.Fatal(err)
	}
	for k := range u.Header {
		req.Header.Set(k, u.Header.Get(k))
	}
	if change != nil {
		change(req)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		x.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		x.Fatal(err)
	}
	return res.StatusCode
}

func TestConformance(t *testing.T) {
	x := newTarget(t)
	run := func(name string, test func(x *target)) {
		t.Run(name, func(t *testing.T) {
			y := *x
			y.T = t
			test(&y)
		})
	}
	run("ranged GET", func(x *target) {
		o := x.put("range", "0123456789")
		if got, err := x.store.ReadRange(x.Context(), x.bucket, o, 3, 4); err != nil || string(got) != "3456" {
			x.Errorf("%q %v", got, err)
		}
		if _, err := x.store.ReadRange(x.Context(), x.bucket, o, 10, 1); !errors.Is(err, blob.ErrRange) {
			x.Errorf("beyond the end: %v", err)
		}
	})
	run("suffix range", func(x *target) {
		x.put("suffix", "0123456789")
		if tail, o, err := x.store.Tail(x.Context(), x.bucket, "suffix", make([]byte, 4)); err != nil || string(tail) != "6789" || o.Size != 10 {
			x.Errorf("%q %+v %v", tail, o, err)
		}
	})
	run("ETag and If-Match on GET", func(x *target) {
		o := x.put("etag", "one")
		if o.ETag == "" {
			x.Fatal("no ETag")
		}
		x.put("etag", "two")
		if _, err := x.store.ReadRange(x.Context(), x.bucket, o, 0, 3); !errors.Is(err, blob.ErrChanged) {
			x.Errorf("the version before: %v", err)
		}
	})
	run("If-Unmodified-Since on GET", func(x *target) {
		o := x.put("since", "one")
		o.ETag = ""
		if got, err := x.store.ReadRange(x.Context(), x.bucket, o, 0, 3); err != nil || string(got) != "one" {
			x.Errorf("%q %v", got, err)
		}
		o.Modified = o.Modified.Add(-time.Hour)
		if _, err := x.store.ReadRange(x.Context(), x.bucket, o, 0, 3); !errors.Is(err, blob.ErrChanged) {
			x.Errorf("a version of before: %v", err)
		}
	})
	run("list: any key, start-after, folders", (*target).listing)
	run("list: times as in HEAD", func(x *target) {
		o := x.put("time", "x")
		_, head, err := x.store.Get(x.Context(), x.bucket, "time")
		if err != nil {
			x.Fatal(err)
		}
		if !o.Modified.Equal(head.Modified) { // Store.Look lists for that reason
			x.Skipf("listed %s, answered %s", o.Modified.Format(time.RFC3339Nano), head.Modified.Format(time.RFC3339Nano))
		}
	})
	run("DELETE of what is gone", func(x *target) {
		x.put("gone", "x")
		for range 2 {
			if err := x.store.Delete(x.Context(), x.bucket, "gone"); err != nil {
				x.Error(err)
			}
		}
		if found, err := x.store.Look(x.Context(), x.bucket, []string{"gone"}); err != nil || len(found) != 0 {
			x.Errorf("%v %v", found, err)
		}
	})
	run("presigned PUT", func(x *target) {
		u := blob.PutRequest{Bucket: x.bucket, Key: "up/日本 #1 + 100%.cbz", Size: 3, Header: http.Header{"Content-Type": {"application/zip"}}}
		if status := x.send(u, time.Minute, "abc", nil); status != 200 {
			x.Fatalf("status %d", status)
		}
		if found, err := x.store.Look(x.Context(), x.bucket, []string{u.Key}); err != nil || len(found) != 1 || found[0].Size != 3 {
			x.Errorf("%v %v", found, err)
		}
	})
	run("presigned PUT: another size refused", func(x *target) { x.refused(nil, "abcd") })
	run("presigned PUT: another type refused", func(x *target) {
		x.refused(func(r *http.Request) { r.Header.Set("Content-Type", "text/html") }, "abc")
	})
	run("presigned PUT: another key refused", func(x *target) {
		x.refused(func(r *http.Request) { r.URL.Path += "x"; r.URL.RawPath = "" }, "abc")
	})
	run("presigned PUT: refused when expired", func(x *target) {
		u := blob.PutRequest{Bucket: x.bucket, Key: "late", Size: 3}
		// The address must expire in the meantime.
		if status := x.send(u, time.Second, "abc", func(*http.Request) { <-time.After(2500 * time.Millisecond) }); status != 403 {
			x.Errorf("status %d", status)
		}
	})
	run("conditional PUT", func(x *target) {
		x.put("once", "first")
		u := blob.PutRequest{Bucket: x.bucket, Key: "once", Size: 3, Header: http.Header{"If-None-Match": {"*"}}}
		if status := x.send(u, time.Minute, "abc", nil); status != http.StatusPreconditionFailed {
			x.Skipf("status %d: the store replaces what exists; only the database keeps a book from that", status)
		}
	})
	run("multipart", (*target).multipart)
	run("multipart: conditional completion", func(x *target) {
		x.put("big once", "first")
		id, parts := x.begin("big once", 1)
		if _, err := x.store.CompleteParts(x.Context(), x.bucket, "big once", id, parts, true); !errors.Is(err, blob.ErrChanged) {
			x.Skipf("%v: the store replaces what exists", err)
		}
	})
	run("multipart: the old are forgotten", func(x *target) {
		ids := []string{}
		for range 2 {
			id, _ := x.begin("big half", 1)
			ids = append(ids, id)
		}
		if n, err := x.store.AbortStale(x.Context(), x.bucket, time.Now().Add(-time.Hour)); err != nil || n != 0 {
			x.Errorf("%d of now are forgotten: %v", n, err)
		}
		switch n, err := x.store.AbortStale(x.Context(), x.bucket, time.Now().Add(time.Hour)); {
		case err != nil:
			x.Error(err)
		case n == 0:
			x.Skip("the store lists none without being told its key")
		}
		for _, id := range ids {
			if _, err := x.store.Parts(x.Context(), x.bucket, "big half", id); !errors.Is(err, blob.ErrNotFound) {
				x.Errorf("it is still there: %v", err)
			}
		}
	})
	run("lifecycle rules", func(x *target) {
		_, err := x.sdk.PutBucketLifecycleConfiguration(x.Context(), &s3.PutBucketLifecycleConfigurationInput{Bucket: &x.bucket,
			LifecycleConfiguration: &types.BucketLifecycleConfiguration{Rules: []types.LifecycleRule{{ID: aws.String("pages"), Status: types.ExpirationStatusEnabled,
				Filter: &types.LifecycleRuleFilter{Prefix: aws.String("page/")}, Expiration: &types.LifecycleExpiration{Days: aws.Int32(30)}}}}})
		if err != nil {
			x.Skip("not supported: ", err)
		}
	})
}

func (x *target) refused(change func(*http.Request), body string) {
	x.Helper()
	u := blob.PutRequest{Bucket: x.bucket, Key: "refused", Size: 3, Header: http.Header{"Content-Type": {"application/zip"}}}
	if status := x.send(u, time.Minute, body, change); status/100 == 2 {
		x.Skipf("status %d: the store does not check it", status)
	}
	if found, err := x.store.Look(x.Context(), x.bucket, []string{"refused"}); err != nil || len(found) != 0 {
		x.Errorf("refused, but there: %v %v", found, err)
	}
}

func (x *target) listing() {
	keys := []string{"list/a b+c&d=e.cbz", "list/100%25.cbz", "list/q?x;y,z:@!$'()*~.cbz", "list/é/é.cbz", "list/日本/語 #1 (2012).cbz"}
	for i := range 1100 { // more than a page
		keys = append(keys, fmt.Sprintf("list/many/%04d.cbz", i))
	}
	work := make(chan string)
	done := make(chan error, 8)
	for range cap(done) {
		go func() {
			var failure error
			for key := range work {
				failure = errors.Join(failure, x.store.Put(context.WithoutCancel(x.Context()), x.bucket, key, "application/zip", []byte(key)))
			}
			done <- failure
		}()
	}
	for _, key := range keys {
		work <- key
	}
	close(work)
	for range cap(done) {
		if err := <-done; err != nil {
			x.Fatal(err)
		}
	}
	slices.Sort(keys)
	var listed []string
	for page, err := range x.store.List(x.Context(), x.bucket, "list/", "") {
		if err != nil {
			x.Fatal(err)
		}
		for _, o := range page {
			listed = append(listed, o.Key)
		}
	}
	if !slices.Equal(listed, keys) {
		x.Errorf("%d keys listed, want %d, in order", len(listed), len(keys))
	}
	var after []string
	for page, err := range x.store.List(x.Context(), x.bucket, "list/", "list/many/0999.cbz") {
		if err != nil {
			x.Fatal(err)
		}
		for _, o := range page {
			after = append(after, o.Key)
		}
	}
	if at := slices.Index(keys, "list/many/0999.cbz"); !slices.Equal(after, keys[at+1:]) {
		x.Errorf("%d keys after, want %d", len(after), len(keys)-at-1)
	}
	folders, objects, _, err := x.store.Folders(x.Context(), x.bucket, "list/", "", 1)
	if err != nil || !slices.Equal(folders, []string{"list/many/", "list/é/", "list/日本/"}) || len(objects) != 3 {
		x.Errorf("folders %q, %d objects, %v", folders, len(objects), err)
	}
	for pages, want := range map[int]int{1: 1000, 2: 1100, 3: 1100} {
		_, objects, more, err := x.store.Folders(x.Context(), x.bucket, "list/many/", "", pages)
		if err != nil || len(objects) != want || more != (pages == 1) {
			x.Errorf("%d pages: %d objects, more %v, %v", pages, len(objects), more, err)
		}
	}
	for _, after := range []string{"many/", "é/"} {
		folders, objects, more, err := x.store.Folders(x.Context(), x.bucket, "list/", after, 1)
		if err != nil || more || slices.Contains(folders, "list/"+after) || !slices.Contains(folders, "list/日本/") ||
			slices.ContainsFunc(objects, func(o blob.Object) bool { return o.Key <= "list/"+after }) {
			x.Errorf("folders after %s: %q, %v, more %v, %v", after, folders, objects, more, err)
		}
	}
	for name, want := range map[string][2]bool{"list/many": {true, false}, "list/日本": {true, false}, "list/man": {}, "list/many/0003.cbz": {false, true},
		"list/many/0003": {}, "list/many/": {}} { // the last is looked for on two pages
		if folder, object, err := x.store.Named(x.Context(), x.bucket, name); err != nil || [2]bool{folder, object} != want {
			x.Errorf("%s: folder %v, object %v, %v", name, folder, object, err)
		}
	}
	want := []string{keys[0], "list/many/0003.cbz", "list/many/0500.cbz", "list/many/1099.cbz", "list/é/é.cbz"}
	asked := append(slices.Clone(want), "list/many/0500.cb", "list/many/none.cbz", "list/zzz", "nothing/at/all.cbz")
	slices.Sort(asked)
	slices.Sort(want)
	found, err := x.store.Look(x.Context(), x.bucket, asked)
	if err != nil {
		x.Fatal(err)
	}
	var got []string
	for _, o := range found {
		got = append(got, o.Key)
	}
	if !slices.Equal(got, want) {
		x.Errorf("looked at %q: %q", asked, got)
	}
}

// begin starts a multipart upload and sends its parts: 5 MiB each, the last one shorter.
func (x *target) begin(key string, n int) (id string, parts []blob.Part) {
	x.Helper()
	id, err := x.store.BeginParts(x.Context(), x.bucket, key, "application/zip")
	if err != nil {
		x.Fatal(err)
	}
	for i := 1; i <= n; i++ {
		body := strings.Repeat("x", 5<<20)
		if i == n {
			body = "end"
		}
		u := blob.PutRequest{Bucket: x.bucket, Key: key, Size: int64(len(body)), Part: i, ID: id}
		if status := x.send(u, time.Minute, body, nil); status != 200 {
			x.Fatalf("part %d: status %d", i, status)
		}
	}
	if parts, err = x.store.Parts(x.Context(), x.bucket, key, id); err != nil || len(parts) != n {
		x.Fatalf("parts %v, %v", parts, err)
	}
	return id, parts
}

func (x *target) multipart() {
	id, parts := x.begin("big", 2)
	if parts[0].Size != 5<<20 || parts[1].Size != 3 || parts[0].ETag == "" {
		x.Errorf("parts %+v", parts)
	}
	if _, err := x.store.CompleteParts(x.Context(), x.bucket, "big", id, parts, false); err != nil {
		x.Fatal(err)
	}
	if tail, o, err := x.store.Tail(x.Context(), x.bucket, "big", make([]byte, 4)); err != nil || !bytes.Equal(tail, []byte("xend")) || o.Size != 5<<20+3 {
		x.Errorf("%q %+v %v", tail, o, err)
	}
	if _, err := x.store.Parts(x.Context(), x.bucket, "big", id); !errors.Is(err, blob.ErrNotFound) {
		x.Errorf("parts after completion: %v", err)
	}
	id, _ = x.begin("given up", 1)
	for range 2 {
		if err := x.store.AbortParts(x.Context(), x.bucket, "given up", id); err != nil {
			x.Error(err)
		}
	}
}
