package testkit

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	sqsapi "github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longbox/longbox/shared/platform/queue"
	"github.com/longbox/longbox/shared/testkit/sqs"
)

// Announcer is a store with a bucket that sends notifications of its changes to a queue.
type Announcer struct {
	*S3
	Bucket string
	SDK    *s3.Client
	Queue  queue.Config // ObjectURL receives the notifications
}

// StartAnnouncer starts a store whose bucket sends notifications of created and removed objects. How they reach a queue
// differs, but only here:
//
//   - LocalStack and AWS send them to a queue (TEST_S3_EVENTS=sqs, the queue's service at TEST_SQS_ENDPOINT);
//   - MinIO posts them to an address that is set at its start (TEST_S3_EVENTS=webhook; TEST_S3_WEBHOOK is the host:port
//     of the receiver, and the target's name is longbox);
//   - the gateway of StartS3 posts them too.
//
// Posted notifications are forwarded to a queue.
func StartAnnouncer(t testing.TB, bucket string) *Announcer {
	t.Helper()
	a := &Announcer{Bucket: bucket}
	events := types.NotificationConfiguration{QueueConfigurations: []types.QueueConfiguration{{Events: []types.Event{"s3:ObjectCreated:*", "s3:ObjectRemoved:*"}}}}
	switch os.Getenv("TEST_S3_EVENTS") {
	case "sqs":
		a.S3 = StartS3(t, bucket)
		a.Queue = queue.Config{Endpoint: os.Getenv("TEST_SQS_ENDPOINT"), Region: a.Config.Region, Window: 8, Resend: time.Minute}
		events.QueueConfigurations[0].QueueArn = a.queue(t)
	case "webhook":
		a.bridge(t, os.Getenv("TEST_S3_WEBHOOK"))
		a.S3 = StartS3(t, bucket)
		events.QueueConfigurations[0].QueueArn = aws.String("arn:minio:sqs::longbox:webhook")
	default: // the gateway announces everything; it has no setting per bucket
		a.S3 = startS3(t, "http://"+a.bridge(t, "127.0.0.1:0"), bucket)
		a.SDK = a.client()
		return a
	}
	a.SDK = a.client()
	if _, err := a.SDK.PutBucketNotificationConfiguration(t.Context(), &s3.PutBucketNotificationConfigurationInput{Bucket: &bucket,
		NotificationConfiguration: &events}); err != nil {
		t.Fatal(err)
	}
	return a
}

// queue creates a queue at the store's own queue service and returns its ARN.
func (a *Announcer) queue(t testing.TB) *string {
	c := sqsapi.New(sqsapi.Options{Region: a.Queue.Region, BaseEndpoint: &a.Queue.Endpoint, Credentials: envCredentials()})
	made, err := c.CreateQueue(t.Context(), &sqsapi.CreateQueueInput{QueueName: &a.Bucket})
	if err != nil {
		t.Fatal(err)
	}
	a.Queue.ObjectURL = *made.QueueUrl
	found, err := c.GetQueueAttributes(t.Context(), &sqsapi.GetQueueAttributesInput{QueueUrl: made.QueueUrl,
		AttributeNames: []sqstypes.QueueAttributeName{"QueueArn"}})
	if err != nil {
		t.Fatal(err)
	}
	return aws.String(found.Attributes["QueueArn"])
}

// bridge forwards notifications posted to the address to a queue, and returns its address.
func (a *Announcer) bridge(t testing.TB, address string) string {
	server := sqs.Start(t)
	a.Queue = queue.Config{Region: "us-east-1", ObjectURL: server.Queue("objects", 30*time.Second, "", 0), Window: 8, Resend: time.Minute}
	to := queue.Open(a.Queue, a.Queue.ObjectURL)
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	hook := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && len(body) > 0 { // MinIO checks the receiver with an empty request
			_, err = to.Send(context.WithoutCancel(r.Context()), named(string(body)))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable) // the store retries
		}
	})}
	go hook.Serve(l) // until it is closed
	t.Cleanup(func() { hook.Close() })
	return l.Addr().String()
}

// named repairs a notification of the gateway (versitygw 1.8.0): the names of the bucket, and of an object outside
// folders, point into the memory of the request, which another request may have overwritten. The ARN,
// arn:aws:s3:::/bucket/key, is a copy.
func named(body string) string {
	var event struct {
		Records []map[string]any
	}
	if err := json.Unmarshal([]byte(body), &event); err != nil || len(event.Records) != 1 {
		return body
	}
	entity, _ := event.Records[0]["s3"].(map[string]any)
	bucket, _ := entity["bucket"].(map[string]any)
	object, _ := entity["object"].(map[string]any)
	arn, _ := bucket["arn"].(string)
	path, its := strings.CutPrefix(arn, "arn:aws:s3:::/")
	if !its {
		return body
	}
	name, key, _ := strings.Cut(path, "/")
	bucket["name"] = name
	if key != "" {
		object["key"] = key
	}
	out, err := json.Marshal(event)
	if err != nil {
		return body
	}
	return string(out)
}

func (s *S3) client() *s3.Client {
	return s3.New(s3.Options{Region: s.Config.Region, UsePathStyle: true, BaseEndpoint: &s.Config.LibraryEndpoint, Credentials: envCredentials(),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired}) // not every store supports checksums
}

func envCredentials() aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), "")
}
