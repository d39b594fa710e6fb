package infra_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/blob"
)

// The bucket's lifecycle rules delete what the scheduler deletes in other stores, and nothing else.
func TestLifecycleIsTheCodes(t *testing.T) {
	t.Parallel()
	left := maps.Clone(blob.Lives)
	for _, rule := range read(t, "infra/storage.yaml").resources("AWS::S3::Bucket")["MediaBucket"].get("LifecycleConfiguration", "Rules").list() {
		if rule.get("ExpirationInDays").text() == "" {
			continue
		}
		prefix := rule.get("Prefix").text()
		days, err := strconv.Atoi(rule.get("ExpirationInDays").text())
		if life, ok := left[prefix]; err != nil || !ok || time.Duration(days)*24*time.Hour != life || rule.get("Status").text() != "Enabled" {
			t.Errorf("rule %s expires %q after %d days; blob.Lives says %s", rule.get("Id").text(), prefix, days, life)
		}
		delete(left, prefix)
	}
	for prefix, life := range left {
		t.Errorf("no rule of MediaBucket expires %q after %s", prefix, life)
	}
}

// An export is written to the function's disk before it is stored. One object, stored with one request, is at most 5
// GB.
func TestExportFitsTheDisk(t *testing.T) {
	t.Parallel()
	megabytes, err := strconv.Atoi(read(t, "template.yaml").get("Resources", "Operator", "Properties", "EphemeralStorage", "Size").text())
	if err != nil || megabytes<<20 <= 5<<30 {
		t.Errorf("Operator has %d MB of disk (%v); docs/tenants.md promises exports of 5 GB", megabytes, err)
	}
}

// Every bucket is encrypted, private and requires TLS. Every queue requires TLS, and its visibility timeout is six
// times the timeout of the function that reads it.
func TestBucketsAndQueuesAreSafe(t *testing.T) {
	t.Parallel()
	storage := read(t, "infra/storage.yaml")
	buckets, policies := storage.resources("AWS::S3::Bucket"), storage.resources("AWS::S3::BucketPolicy")
	edge := read(t, "infra/edge.yaml")
	maps.Copy(buckets, edge.resources("AWS::S3::Bucket"))
	maps.Copy(policies, edge.resources("AWS::S3::BucketPolicy"))
	if len(buckets) < 3 {
		t.Fatal("no buckets found")
	}
	for name, b := range buckets {
		for _, block := range []string{"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"} {
			if b.get("PublicAccessBlockConfiguration", block).text() != "true" {
				t.Errorf("%s: %s is not set", name, block)
			}
		}
		if b.get("BucketEncryption").Node == nil {
			t.Errorf("%s is not encrypted", name)
		}
		if p := policies[name+"Policy"]; !strings.Contains(strings.Join(p.scalars(), " "), "Deny Principal * Action s3:*") {
			t.Errorf("%s: no policy refuses requests without TLS", name)
		}
		if !strings.Contains(strings.Join(b.get("LifecycleConfiguration").scalars(), " "), "AbortIncompleteMultipartUpload") {
			t.Errorf("%s keeps broken uploads", name)
		}
	}
	closed := map[string]bool{}
	for _, p := range storage.resources("AWS::SQS::QueuePolicy") {
		for _, q := range p.get("Queues").list() {
			closed[q.text()] = strings.Contains(strings.Join(p.scalars(), " "), "Deny Principal * Action sqs:*")
		}
	}
	timeout, err := strconv.Atoi(read(t, "template.yaml").get("Resources", "Worker", "Properties", "Timeout").text())
	if err != nil {
		t.Fatal(err)
	}
	visibility, err := strconv.Atoi(storage.get("Parameters", "WorkerTimeout", "Default").text())
	if err != nil || visibility < 6*timeout {
		t.Errorf("messages come again after %d s; six times the worker's timeout are %d", visibility, 6*timeout)
	}
	for name, q := range storage.resources("AWS::SQS::Queue") {
		if !closed[name] {
			t.Errorf("%s: no policy refuses requests without TLS", name)
		}
		if strings.HasSuffix(name, "Queue") && (q.get("RedrivePolicy").Node == nil || q.get("VisibilityTimeout").text() != "WorkerTimeout") {
			t.Errorf("%s needs a RedrivePolicy and VisibilityTimeout: !Ref WorkerTimeout", name)
		}
	}
}
