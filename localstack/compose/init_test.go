//go:build conformance

package compose_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInit runs init.sh at the LocalStack of TEST_SQS_ENDPOINT.
func TestInit(t *testing.T) {
	endpoint := os.Getenv("TEST_SQS_ENDPOINT")
	if endpoint == "" {
		t.Fatal("TEST_SQS_ENDPOINT is not set: run make conformance, which starts a LocalStack")
	}
	variables := map[string]string{"LIBRARY_S3_ENDPOINT": endpoint, "MEDIA_S3_ENDPOINT": endpoint, "SQS_ENDPOINT": endpoint, "AWS_REGION": "us-east-1",
		"LIBRARY_BUCKET": "init-library", "MEDIA_BUCKET": "init-media", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"TASK_QUEUE_URL": endpoint + "/000000000000/init-tasks", "TASK_DLQ_URL": endpoint + "/000000000000/init-dead",
		"OBJECT_QUEUE_URL": endpoint + "/000000000000/init-objects"}
	tools, err := filepath.Abs("../../.tools/localstack/bin")
	if err != nil {
		t.Fatal(err)
	}
	environ := append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "AWS_DEFAULT_REGION=us-east-1")
	for name, value := range variables {
		environ = append(environ, name+"="+value)
	}
	run := func(name string, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(context.Background(), name, args...)
		cmd.Env = environ
		var complaints bytes.Buffer
		cmd.Stderr = &complaints
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v: %s%s", name, args, err, out, complaints.Bytes())
		}
		return out
	}
	aws := func(args ...string) []byte {
		t.Helper()
		return run(filepath.Join(tools, "aws"), append([]string{"--endpoint-url", endpoint, "--output", "json"}, args...)...)
	}
	for range 2 { // init.sh may run again
		run("bash", "init.sh")
	}
	t.Run("redrive of the task queue", func(t *testing.T) {
		var got struct{ Attributes map[string]string }
		if err := json.Unmarshal(aws("sqs", "get-queue-attributes", "--queue-url", variables["TASK_QUEUE_URL"], "--attribute-names", "All"), &got); err != nil {
			t.Fatal(err)
		}
		if p := got.Attributes["RedrivePolicy"]; !strings.Contains(p, ":init-dead") || !strings.Contains(p, "5") || got.Attributes["VisibilityTimeout"] != "60" {
			t.Errorf("%v", got.Attributes)
		}
	})
	t.Run("an upload is announced", func(t *testing.T) {
		aws("s3api", "put-object", "--bucket", "init-library", "--key", "a b.cbz", "--body", "init.sh")
		var got struct{ Messages []struct{ Body string } }
		for range 3 { // the first message is S3's test of the new notification
			out := aws("sqs", "receive-message", "--queue-url", variables["OBJECT_QUEUE_URL"], "--wait-time-seconds", "5", "--max-number-of-messages", "10")
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			for _, m := range got.Messages {
				if strings.Contains(m.Body, "ObjectCreated:Put") {
					return
				}
			}
		}
		t.Errorf("%+v", got)
	})
	t.Run("pages expire", func(t *testing.T) {
		if out := aws("s3api", "get-bucket-lifecycle-configuration", "--bucket", "init-media"); !strings.Contains(string(out), `"page/"`) {
			t.Errorf("%s", out)
		}
	})
}
