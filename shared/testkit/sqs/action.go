package sqs

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
)

// input has the members of all supported actions.
type input struct {
	QueueName                   string
	QueueURL                    string `json:"QueueUrl"`
	Attributes                  map[string]string
	MessageBody                 string
	DelaySeconds                int
	ReceiptHandle               string
	VisibilityTimeout           *int
	MaxNumberOfMessages         int
	WaitTimeSeconds             int
	AttributeNames              []string
	MessageSystemAttributeNames []string
	Entries                     []struct {
		ID                string `json:"Id"`
		MessageBody       string
		DelaySeconds      int
		ReceiptHandle     string
		VisibilityTimeout *int
	}
}

var actions = map[string]func(s *Server, in input) (any, error){
	"CreateQueue": createQueue, "GetQueueUrl": getQueueURL, "GetQueueAttributes": getAttributes, "PurgeQueue": purge,
	"SendMessage": func(s *Server, in input) (any, error) {
		q, err := s.find(in)
		if err != nil {
			return nil, err
		}
		id, err := s.send(q, in.MessageBody, in.DelaySeconds)
		return map[string]string{"MessageId": id, "MD5OfMessageBody": sum(in.MessageBody)}, err
	},
	"SendMessageBatch": func(s *Server, in input) (any, error) {
		return s.each(in, func(q *queue, i int) (map[string]string, error) {
			e := in.Entries[i]
			id, err := s.send(q, e.MessageBody, e.DelaySeconds)
			return map[string]string{"Id": e.ID, "MessageId": id, "MD5OfMessageBody": sum(e.MessageBody)}, err
		})
	},
	"DeleteMessage": func(s *Server, in input) (any, error) {
		q, err := s.find(in)
		if err == nil {
			err = q.remove(in.ReceiptHandle)
		}
		return struct{}{}, err
	},
	"DeleteMessageBatch": func(s *Server, in input) (any, error) {
		return s.each(in, func(q *queue, i int) (map[string]string, error) {
			return map[string]string{"Id": in.Entries[i].ID}, q.remove(in.Entries[i].ReceiptHandle)
		})
	},
	"ChangeMessageVisibility": func(s *Server, in input) (any, error) {
		q, err := s.find(in)
		if err == nil {
			err = s.extend(q, in.ReceiptHandle, in.VisibilityTimeout)
		}
		return struct{}{}, err
	},
	"ChangeMessageVisibilityBatch": func(s *Server, in input) (any, error) {
		return s.each(in, func(q *queue, i int) (map[string]string, error) {
			return map[string]string{"Id": in.Entries[i].ID}, s.extend(q, in.Entries[i].ReceiptHandle, in.Entries[i].VisibilityTimeout)
		})
	},
}

// find returns the queue of a request, by the last part of its URL.
func (s *Server) find(in input) (*queue, error) {
	name := in.QueueURL[strings.LastIndex(in.QueueURL, "/")+1:]
	if in.QueueURL == "" {
		name = in.QueueName
	}
	if q := s.queues[name]; q != nil {
		return q, nil
	}
	return nil, &fail{400, "QueueDoesNotExist", "The specified queue does not exist."}
}

// each runs a batch action, with a result for every entry.
func (s *Server) each(in input, do func(q *queue, i int) (map[string]string, error)) (any, error) {
	q, err := s.find(in)
	if err != nil {
		return nil, err
	}
	seen, bytes := map[string]bool{}, 0
	for _, e := range in.Entries {
		bytes += len(e.MessageBody)
		if seen[e.ID] {
			return nil, &fail{400, "BatchEntryIdsNotDistinct", "Id " + e.ID + " repeated."}
		}
		seen[e.ID] = true
	}
	switch {
	case len(in.Entries) == 0:
		return nil, &fail{400, "EmptyBatchRequest", "There should be at least one entry in the request."}
	case len(in.Entries) > 10:
		return nil, &fail{400, "TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10."}
	case bytes > maxBody:
		return nil, &fail{400, "BatchRequestTooLong", "Batch requests cannot be longer than 262144 bytes."}
	}
	out := struct {
		Successful []map[string]string
		Failed     []map[string]any
	}{[]map[string]string{}, []map[string]any{}}
	for i, e := range in.Entries {
		ok, err := do(q, i)
		var f *fail
		switch {
		case errors.As(err, &f):
			out.Failed = append(out.Failed, map[string]any{"Id": e.ID, "Code": f.code, "Message": f.message, "SenderFault": true})
		case err != nil:
			return nil, err
		default:
			out.Successful = append(out.Successful, ok)
		}
	}
	return out, nil
}

func createQueue(s *Server, in input) (any, error) {
	q := &queue{name: in.QueueName, visibility: 30 * time.Second}
	if in.QueueName == "" {
		return nil, invalid("Queue name cannot be empty")
	}
	if v, ok := in.Attributes["VisibilityTimeout"]; ok {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 43200 {
			return nil, invalid("VisibilityTimeout %q", v)
		}
		q.visibility = time.Duration(n) * time.Second
	}
	if v, ok := in.Attributes["RedrivePolicy"]; ok {
		var policy struct {
			Target string      `json:"deadLetterTargetArn"`
			Max    json.Number `json:"maxReceiveCount"`
		}
		if err := json.Unmarshal([]byte(v), &policy); err != nil {
			return nil, invalid("RedrivePolicy: %v", err)
		}
		n, err := policy.Max.Int64()
		if err != nil || n < 1 {
			return nil, invalid("maxReceiveCount %q", policy.Max)
		}
		q.dead, q.maxReceives = policy.Target[strings.LastIndex(policy.Target, ":")+1:], int(n)
	}
	if s.queues[in.QueueName] == nil {
		s.queues[in.QueueName] = q
	}
	return map[string]string{"QueueUrl": s.address(in.QueueName)}, nil
}

func getQueueURL(s *Server, in input) (any, error) {
	q, err := s.find(in)
	if err != nil {
		return nil, err
	}
	return map[string]string{"QueueUrl": s.address(q.name)}, nil
}

func getAttributes(s *Server, in input) (any, error) {
	q, err := s.find(in)
	if err != nil {
		return nil, err
	}
	visible, hidden := q.count(time.Now())
	return map[string]any{"Attributes": map[string]string{
		"QueueArn":                              arn(q.name),
		"VisibilityTimeout":                     strconv.Itoa(int(q.visibility.Seconds())),
		"ApproximateNumberOfMessages":           strconv.Itoa(visible),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(hidden),
	}}, nil
}

func purge(s *Server, in input) (any, error) {
	q, err := s.find(in)
	if err == nil {
		q.messages = nil
	}
	return struct{}{}, err
}

func arn(name string) string { return "arn:aws:sqs:us-east-1:" + account + ":" + name }

func sum(body string) string {
	h := md5.Sum([]byte(body)) // required by the protocol
	return hex.EncodeToString(h[:])
}
