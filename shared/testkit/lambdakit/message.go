package lambdakit

import (
	"cmp"
	"fmt"
	"net/url"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// Message is one of an SQS queue.
type Message struct {
	ID, Body string
	Receipt  string // "": one that no queue knows
	Received int    // how often it was received before, plus one; zero: 1
}

// SQSEvent is a batch of messages of the queue with the given name.
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

// Object is what happened to an object of a bucket.
type Object struct {
	Event       string // for example ObjectCreated:Put or ObjectRemoved:Delete
	Bucket, Key string
	Size        int64
	ETag        string
	Time        time.Time
	Sequencer   string
}

// S3Event is S3's notification of what happened; keys are encoded as S3 does.
func S3Event(objects ...Object) events.S3Event {
	var e events.S3Event
	for _, o := range objects {
		e.Records = append(e.Records, events.S3EventRecord{
			EventVersion: "2.1", EventSource: "aws:s3", AWSRegion: "eu-central-1", EventTime: o.Time, EventName: o.Event,
			S3: events.S3Entity{SchemaVersion: "1.0", ConfigurationID: "longbox",
				Bucket: events.S3Bucket{Name: o.Bucket, Arn: "arn:aws:s3:::" + o.Bucket},
				Object: events.S3Object{Key: url.QueryEscape(o.Key), Size: o.Size, ETag: o.ETag, Sequencer: o.Sequencer}},
		})
	}
	return e
}

// ScheduleEvent is what an EventBridge rule sends when its time has come.
func ScheduleEvent(rule string, at time.Time) events.EventBridgeEvent {
	return events.EventBridgeEvent{Version: "0", ID: "00000000-0000-4000-a000-000000000000", DetailType: "Scheduled Event", Source: "aws.events",
		AccountID: "123456789012", Time: at.UTC().Truncate(time.Second), Region: "eu-central-1",
		Resources: []string{"arn:aws:events:eu-central-1:123456789012:rule/" + rule}, Detail: []byte("{}")}
}
