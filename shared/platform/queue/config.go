package queue

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Config names the queues. Credentials are those of the stores.
type Config struct {
	TaskURL   string `env:"TASK_QUEUE_URL"`   // unset: workers poll the task table
	DeadURL   string `env:"TASK_DLQ_URL"`     // dead-letter queue for messages that were received too often
	ObjectURL string `env:"OBJECT_QUEUE_URL"` // the store's notifications of changed objects
	Endpoint  string `env:"SQS_ENDPOINT"`     // unset: the host of the queue's URL
	Region    string `env:"AWS_REGION" envDefault:"us-east-1"`
	// Window limits the tasks of one tenant that are sent or running; the others wait in the table.
	Window int `env:"TASK_WINDOW" envDefault:"8"`
	// Resend is the time after which a message that no worker took is sent again.
	Resend time.Duration `env:"TASK_RESEND" envDefault:"1m"`
}

// Validate returns an error that names the setting out of bounds.
func (c Config) Validate() error {
	for _, s := range []struct{ name, value string }{{"TASK_QUEUE_URL", c.TaskURL}, {"TASK_DLQ_URL", c.DeadURL},
		{"OBJECT_QUEUE_URL", c.ObjectURL}, {"SQS_ENDPOINT", c.Endpoint}} {
		if u, err := url.Parse(s.value); err != nil || (s.value != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https")) {
			return fmt.Errorf("%s: must be an address such as https://sqs.us-east-1.amazonaws.com/123456789012/tasks, is %q", s.name, s.value)
		}
	}
	switch {
	case c == Config{}: // a program without queues, which did not even read the defaults
		return nil
	case c.Window < 1 || c.Window > 1000:
		return fmt.Errorf("TASK_WINDOW: must be 1 to 1000, is %d", c.Window)
	case c.Resend < time.Second || c.Resend > 24*time.Hour:
		return fmt.Errorf("TASK_RESEND: must be 1s to 24h, is %s", c.Resend)
	}
	return nil
}

// Name returns the last part of a queue's URL or ARN.
func Name(address string) string { return address[strings.LastIndexAny(address, "/:")+1:] }
