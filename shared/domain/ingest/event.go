package ingest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/platform/fault"
)

// Limits of one notification. S3 sends one record a message; a key has 1,024 bytes at most.
const (
	maxBody    = 1 << 20
	maxRecords = 1000
	maxKey     = 1024
	maxBucket  = 255
)

// Object is where to look.
type Object struct{ Bucket, Key string }

// notification is what S3 sends to a queue itself (Records), or through EventBridge (Source and Detail), or when the
// notification is set up (Event).
type notification struct {
	Records []struct {
		EventName string `json:"eventName"`
		S3        struct {
			Bucket struct {
				Name string `json:"name"`
				ARN  string `json:"arn"`
			} `json:"bucket"`
			Object struct {
				Key string `json:"key"` // as name reads it
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
			Key string `json:"key"` // as it is
		} `json:"object"`
	} `json:"detail"`
}

// ParseEvent reads a notification of S3 or of EventBridge. Kinds of events that change no object's content, and the
// test event, bring nothing. What is no notification is a BadRequest.
func ParseEvent(body []byte) ([]Object, error) {
	if len(body) > maxBody {
		return nil, fault.New(fault.BadRequest, "The notification has %d bytes; the limit is %d", len(body), maxBody)
	}
	var n notification
	if err := json.Unmarshal(body, &n); err != nil {
		return nil, fault.Wrap(err, fault.BadRequest, "The message is no notification of S3: it is not the JSON expected")
	}
	switch {
	case n.Event == "s3:TestEvent":
		return nil, nil
	case n.Source == "aws.s3":
		return n.bridged()
	case n.Records == nil:
		return nil, fault.New(fault.BadRequest, "The message is no notification of S3: it has neither Records nor the source aws.s3")
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
			return nil, fault.Wrap(err, fault.BadRequest, "Records[%d].s3.object.key is not encoded as S3 does it", i)
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

// changes tells whether an event of this name can make an object appear, change or vanish: uploads of every kind
// (Put, Post, Copy, CompleteMultipartUpload), deletions with and without a delete marker, by hand or by lifecycle.
func changes(event string) bool {
	event = strings.TrimPrefix(event, "s3:") // MinIO writes it
	return strings.HasPrefix(event, "ObjectCreated:") || strings.HasPrefix(event, "ObjectRemoved:") || strings.HasPrefix(event, "LifecycleExpiration:")
}

// name is the key that a record means: S3, MinIO and LocalStack write it as in a form (+ for a space, %XX), the gateway
// of one machine as it is. That one writes the request's path into the bucket's ARN, where others have the bucket's
// name.
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
