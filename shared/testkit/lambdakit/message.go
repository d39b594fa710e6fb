package lambdakit

import (
	"cmp"
	"fmt"
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

// ScheduleEvent is what an EventBridge rule sends when its time has come.
func ScheduleEvent(rule string, at time.Time) events.EventBridgeEvent {
	return events.EventBridgeEvent{Version: "0", ID: "00000000-0000-4000-a000-000000000000", DetailType: "Scheduled Event", Source: "aws.events",
		AccountID: "123456789012", Time: at.UTC().Truncate(time.Second), Region: "eu-central-1",
		Resources: []string{"arn:aws:events:eu-central-1:123456789012:rule/" + rule}, Detail: []byte("{}")}
}
