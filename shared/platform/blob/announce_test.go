package blob_test

import (
	"os"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longbox/longbox/shared/domain/ingest"
)

// announces looks at the notifications of the store itself, as shared/domain/ingest reads them, from a queue of the
// same service: TEST_S3_EVENTS is "sqs" where it has one, at TEST_SQS_ENDPOINT.
func (x *target) announces() {
	var next func() string
	switch queue := os.Getenv("TEST_SQS_ENDPOINT"); {
	case os.Getenv("TEST_S3_EVENTS") == "sqs" && queue != "":
		next = x.queue(queue)
	default:
		x.Skip("not tested: no queue belongs to the store")
	}
	key := "events/日本 #1 + 100%.cbz"
	want := []ingest.Object{{Bucket: x.bucket, Key: key}}
	for _, act := range []func(){func() { x.put(key, "x") }, func() {
		if err := x.store.Delete(x.Context(), x.bucket, key); err != nil {
			x.Fatal(err)
		}
	}} {
		act()
		for {
			body := next()
			got, err := ingest.ParseEvent([]byte(body))
			if err != nil {
				x.Fatalf("%v: %s", err, body)
			}
			if len(got) == 0 { // a test event
				continue
			}
			if !slices.Equal(got, want) {
				x.Fatalf("%q announces %v", body, got)
			}
			break
		}
	}
}

func (x *target) queue(endpoint string) (next func() string) {
	c := sqs.New(sqs.Options{Region: x.Region, BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")})
	made, err := c.CreateQueue(x.Context(), &sqs.CreateQueueInput{QueueName: &x.bucket})
	if err != nil {
		x.Fatal(err)
	}
	_, err = x.sdk.PutBucketNotificationConfiguration(x.Context(), &s3.PutBucketNotificationConfigurationInput{Bucket: &x.bucket,
		NotificationConfiguration: &types.NotificationConfiguration{QueueConfigurations: []types.QueueConfiguration{{
			QueueArn: aws.String("arn:aws:sqs:us-east-1:000000000000:" + x.bucket), Events: []types.Event{"s3:ObjectCreated:*", "s3:ObjectRemoved:*"}}}}})
	if err != nil {
		x.Fatal(err)
	}
	return func() string {
		for range 6 {
			got, err := c.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{QueueUrl: made.QueueUrl, MaxNumberOfMessages: 1, WaitTimeSeconds: 5})
			if err != nil {
				x.Fatal(err)
			}
			for _, m := range got.Messages {
				if _, err := c.DeleteMessage(x.Context(), &sqs.DeleteMessageInput{QueueUrl: made.QueueUrl, ReceiptHandle: m.ReceiptHandle}); err != nil {
					x.Fatal(err)
				}
				return *m.Body
			}
		}
		x.Fatal("no notification in 30 s")
		return ""
	}
}
