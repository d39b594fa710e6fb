package ingest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/platform/fault"
)

// Limits of one notification. S3 sends one record per message; a key has at most 1,024 bytes.
const (
	maxBody    = 1 << 20
	maxRecords = 1000
	maxKey     = 1024
	maxBucket  = 255
)

// Object is an object to check.
type Object struct{ Bucket, Key string }

// notification is a message from S3 to a queue (Records), from EventBridge (Source and Detail), or the test message
// when notifications are configured (Event).
type notification struct {
	Records []struct {
		EventName string `json:"eventName"`
		S3        struct {
			Bucket struct {
				Name string `json:"name"`
				ARN  string `json:"arn"`
			} `json:"bucket"`
			Object struct {
				Key string `json:"key"` // decoded by name
			} `json:"object"`
		} `json:"s3"`
	} `json:"Records"`
	Event string `json:"Event"`

	Source     string `json:"source"`
	DetailType string `json:"detail-type"`
	Detail     struct {
		Bucket struct {
			Name string `json:"name"`
		} `json:"bucket"`
		Object struct {
			Key string `json:"key"` // not encoded
		} `json:"object"`
	} `json:"detail"`
}

// ParseEvent parses a notification from S3 or EventBridge. Events that change no object's content, and the test event,
// yield no objects. A malformed notification is a BadRequest.
func ParseEvent(body []byte) ([]Object, error) {
	if len(body) > maxBody {
		return nil, fault.New(fault.BadRequest, "The notification has %d bytes; the limit is %d", len(body), maxBody)
	}
	var n notification
	if err := json.Unmarshal(body, &n); err != nil {
		return nil, fault.Wrap(err, fault.BadRequest, "The message is not an S3 notification: it is not the expected JSON")
	}
	switch {
	case n.Event == "s3:TestEvent":
		return nil, nil
	case n.Source == "aws.s3":
		return n.bridged()
	case n.Records == nil:
		return nil, fault.New(fault.BadRequest, "The message is not an S3 notification: it has neither Records nor the source aws.s3")
	case len(n.Records) > maxRecords:
		return nil, fault.New(fault.BadRequest, "The notification has %d records; the limit is %d", len(n.Records), maxRecords)
	}
	var out []Object
	for i, r := range n.Records {
		if !changes(r.EventName) {
			continue
		}
		key, err := name(r.S3.Object.Key, r.S3.Bucket.ARN)
		if err != nil {
			return nil, fault.Wrap(err, fault.BadRequest, "Records[%d].s3.object.key is not encoded like an S3 key", i)
		}
		o := Object{r.S3.Bucket.Name, key}
		if err := o.check(fmt.Sprintf("Records[%d].s3", i)); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

func (n notification) bridged() ([]Object, error) {
	if n.DetailType != "Object Created" && n.DetailType != "Object Deleted" {
		return nil, nil
	}
	o := Object{n.Detail.Bucket.Name, n.Detail.Object.Key}
	if err := o.check("detail"); err != nil {
		return nil, err
	}
	return []Object{o}, nil
}

// changes reports whether events of this name can create, change or remove an object: uploads of every kind (Put, Post,
// Copy, CompleteMultipartUpload), deletions with and without a delete marker, by request or by lifecycle rule.
func changes(event string) bool {
	event = strings.TrimPrefix(event, "s3:") // MinIO writes this prefix
	return strings.HasPrefix(event, "ObjectCreated:") || strings.HasPrefix(event, "ObjectRemoved:") || strings.HasPrefix(event, "LifecycleExpiration:")
}

// name decodes the key of a record. S3, MinIO and LocalStack use form encoding (+ for a space, %XX); the gateway of one
// machine does not encode. That gateway puts the request path into the bucket's ARN, instead of the bucket's name.
func name(key, arn string) (string, error) {
	if strings.HasPrefix(arn, "arn:aws:s3:::/") {
		return key, nil
	}
	return url.QueryUnescape(key)
}

func (o Object) check(at string) error {
	switch {
	case o.Bucket == "" || len(o.Bucket) > maxBucket || !utf8.ValidString(o.Bucket) || strings.ContainsRune(o.Bucket, 0):
		return fault.New(fault.BadRequest, "%s.bucket.name must have 1 to %d bytes of text", at, maxBucket)
	case o.Key == "" || len(o.Key) > maxKey || !utf8.ValidString(o.Key) || strings.ContainsRune(o.Key, 0):
		return fault.New(fault.BadRequest, "%s.object.key must have 1 to %d bytes of text", at, maxKey)
	}
	return nil
}
