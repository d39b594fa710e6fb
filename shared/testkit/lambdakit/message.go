package lambdakit

import (
	"cmp"
	"fmt"
	"net/url"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// Message is a message of an SQS queue.
type Message struct {
	ID, Body string
	Receipt  string // "": a receipt that no queue knows
	Received int    // receive count, including this time; zero: 1
}

// SQSEvent returns an event with messages of the named queue.
func SQSEvent(queue string, messages ...Message) events.SQSEvent {
	var e events.SQSEvent
	for i, m := range messages {
		if m.ID == "" {
			m.ID = fmt.Sprintf("00000000-0000-4000-9000-%012d", i)
		}
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: m.ID, ReceiptHandle: cmp.Or(m.Receipt, "receipt-"+m.ID), Body: m.Body, EventSource: "aws:sqs", AWSRegion: "eu-central-1",
			EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:" + queue,
			Attributes: map[string]string{"ApproximateReceiveCount": fmt.Sprint(max(m.Received, 1)),
				"SentTimestamp": fmt.Sprint(time.Now().UnixMilli())},
		})
	}
	return e
}

// ScheduleEvent returns the event that an EventBridge rule sends when it is due.
func ScheduleEvent(rule string, at time.Time) events.EventBridgeEvent {
	return events.EventBridgeEvent{Version: "0", ID: "00000000-0000-4000-a000-000000000000", DetailType: "Scheduled Event", Source: "aws.events",
		AccountID: "123456789012", Time: at.UTC().Truncate(time.Second), Region: "eu-central-1",
		Resources: []string{"arn:aws:events:eu-central-1:123456789012:rule/" + rule}, Detail: []byte("{}")}
}

// S3Event returns the notification that S3 sends of an object: the event is ObjectCreated:Put, for example.
func S3Event(event, bucket, key string, size int64) events.S3Event {
	var object events.S3Object
	object.Key, object.Size = url.QueryEscape(key), size
	return events.S3Event{Records: []events.S3EventRecord{{EventVersion: "2.1", EventSource: "aws:s3", AWSRegion: "eu-central-1", EventTime: time.Now().UTC(),
		EventName: event, S3: events.S3Entity{SchemaVersion: "1.0", Bucket: events.S3Bucket{Name: bucket, Arn: "arn:aws:s3:::" + bucket}, Object: object}}}}
}
