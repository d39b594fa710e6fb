package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/queue"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/sqs"
)

func TestMain(m *testing.M) {
	os.Setenv("AWS_ACCESS_KEY_ID", "longboxtest")
	os.Setenv("AWS_SECRET_ACCESS_KEY", "longboxtestsecret")
	os.Setenv("AWS_SESSION_TOKEN", "longboxtesttoken") // as of a Lambda function, whose keys are no good without
	os.Exit(m.Run())
}

// service returns the endpoint under test (TEST_SQS_ENDPOINT, else the server of testkit) and the SDK's client for it.
// The SDK creates the queues, so the server of testkit is also checked against the SDK.
func service(t *testing.T) (queue.Config, *sdk.Client) {
	t.Helper()
	endpoint := os.Getenv("TEST_SQS_ENDPOINT")
	if endpoint == "" {
		endpoint = sqs.Start(t).URL
	}
	client := sdk.New(sdk.Options{Region: "us-east-1", BaseEndpoint: aws.String(endpoint),
		Credentials: credentials.NewStaticCredentialsProvider("longboxtest", "longboxtestsecret", "")})
	return queue.Config{Endpoint: endpoint, Region: "us-east-1"}, client
}

func open(t *testing.T, c queue.Config, client *sdk.Client, attributes map[string]string) *queue.Queue {
	t.Helper()
	made, err := client.CreateQueue(context.Background(), &sdk.CreateQueueInput{QueueName: aws.String("t-" + uuid.NewString()), Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	q := queue.Open(c, *made.QueueUrl)
	return q
}

// receive collects messages until there are n, or for the given time.
func receive(t *testing.T, q *queue.Queue, n int, patience, visibility time.Duration) []queue.Message {
	t.Helper()
	var out []queue.Message
	for end := time.Now().Add(patience); len(out) < n && time.Now().Before(end); {
		got, err := q.Receive(context.Background(), n-len(out), time.Second, visibility)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, got...)
	}
	return out
}

func TestSendReceiveDelete(t *testing.T) {
	t.Parallel()
	c, client := service(t)
	q := open(t, c, client, nil)
	bodies := make([]string, 23) // three requests
	for i := range bodies {
		bodies[i] = fmt.Sprintf(`{"n":%d,"text":"ü <&> \"quoted\""}`, i)
	}
	if unsent, err := q.Send(context.Background(), bodies...); err != nil || len(unsent) != 0 {
		t.Fatal(unsent, err)
	}
	got := receive(t, q, len(bodies), 10*time.Second, time.Minute)
	seen := map[string]bool{}
	for _, m := range got {
		seen[m.Body] = true
		if m.ID == "" || m.Receipt == "" || m.Receives != 1 {
			t.Errorf("%+v", m)
		}
	}
	for _, b := range bodies {
		if !seen[b] {
			t.Errorf("%s did not come", b)
		}
	}
	if err := q.Delete(context.Background(), got...); err != nil {
		t.Fatal(err)
	}
	if more := receive(t, q, 1, time.Second, time.Minute); len(more) != 0 {
		t.Errorf("%d messages after all were deleted", len(more))
	}
}

func TestVisibility(t *testing.T) {
	t.Parallel()
	c, client := service(t)
	q := open(t, c, client, nil)
	ctx := context.Background()
	if _, err := q.Send(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	first := receive(t, q, 1, 5*time.Second, 2*time.Second)
	if len(first) != 1 {
		t.Fatal("nothing came")
	}
	if err := q.Extend(ctx, 30*time.Second, first...); err != nil {
		t.Fatal(err)
	}
	if early := receive(t, q, 1, 3*time.Second, time.Second); len(early) != 0 {
		t.Fatal("it came again although it was extended")
	}
	if err := q.Extend(ctx, 0, first...); err != nil { // give it back
		t.Fatal(err)
	}
	again := receive(t, q, 1, 5*time.Second, time.Second)
	if len(again) != 1 || again[0].Receives != 2 || again[0].ID != first[0].ID {
		t.Fatalf("%+v", again)
	}
	// Nobody deleted it.
	if third := receive(t, q, 1, 5*time.Second, time.Second); len(third) != 1 || third[0].Receives != 3 {
		t.Fatalf("%+v", third)
	}
}

func TestLongPollWakesUp(t *testing.T) {
	t.Parallel()
	c, client := service(t)
	q := open(t, c, client, nil)
	sent := make(chan time.Time, 1)
	time.AfterFunc(500*time.Millisecond, func() {
		if _, err := q.Send(context.Background(), "late"); err != nil {
			t.Error(err)
		}
		sent <- time.Now()
	})
	got, err := q.Receive(context.Background(), 10, 20*time.Second, time.Second)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if waited := time.Since(<-sent); waited > 5*time.Second {
		t.Errorf("the message came %s after it was sent", waited)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := q.Receive(ctx, 1, 20*time.Second, time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a poll that is called off: %v", err)
	}
}

func TestRedrive(t *testing.T) {
	t.Parallel()
	c, client := service(t)
	ctx := context.Background()
	dead := open(t, c, client, nil)
	attributes, err := client.GetQueueAttributes(ctx, &sdk.GetQueueAttributesInput{QueueUrl: aws.String(dead.URL()), AttributeNames: []types.QueueAttributeName{"QueueArn"}})
	if err != nil {
		t.Fatal(err)
	}
	q := open(t, c, client, map[string]string{"VisibilityTimeout": "1",
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"2"}`, attributes.Attributes["QueueArn"])})
	if _, err := q.Send(ctx, "bad"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got := receive(t, q, 1, 5*time.Second, time.Second)
		if len(got) != 1 {
			t.Fatal("it did not come twice")
		}
		if err := q.Extend(ctx, 0, got...); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, 10*time.Second, func() bool {
		if got := receive(t, q, 1, 100*time.Millisecond, time.Second); len(got) != 0 {
			t.Fatal("it came a third time")
		}
		return len(receive(t, dead, 1, 100*time.Millisecond, time.Minute)) == 1
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	c, client := service(t)
	ctx := context.Background()
	q := open(t, c, client, nil)
	missing := queue.Open(c, q.URL()+"-missing")
	unsent, err := missing.Send(ctx, "a", "b")
	var refused *queue.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Code, "NonExistentQueue") && !strings.Contains(refused.Code, "QueueDoesNotExist") || len(unsent) != 2 {
		t.Errorf("a queue that does not exist: %v, %v", unsent, err)
	}
	if err := q.Delete(ctx, queue.Message{Receipt: "not a receipt"}); err == nil {
		t.Error("a forged receipt was accepted")
	}
	nowhere := queue.Open(queue.Config{Endpoint: "http://127.0.0.1:1"}, q.URL())
	if unsent, err := nowhere.Send(ctx, slices.Repeat([]string{"x"}, 12)...); err == nil || len(unsent) != 12 {
		t.Errorf("nobody listens: %v, %v", unsent, err)
	}
}

// In a batch with one refused message the others are sent.
func TestPartOfABatch(t *testing.T) {
	t.Parallel()
	c, client := service(t)
	q := open(t, c, client, nil)
	unsent, err := q.Send(context.Background(), "good", "", "good too")
	if err == nil {
		t.Fatal("an empty message was accepted")
	}
	got := receive(t, q, 2, 2*time.Second, time.Minute)
	if len(got)+len(unsent) != 3 { // AWS refuses the whole request, others the one message: nothing may be unaccounted for
		t.Errorf("%d came, %v were not sent: %v", len(got), unsent, err)
	}
}

// Only the server of testkit refuses on purpose.
func TestTrouble(t *testing.T) {
	t.Parallel()
	s := sqs.Start(t)
	q := queue.Open(queue.Config{Region: "us-east-1"}, s.Queue("q", time.Minute, "", 0))
	s.Fault(sqs.Faults{Refuse: 1})
	before := s.Calls("SendMessageBatch")
	if _, err := q.Send(context.Background(), "x"); err == nil {
		t.Error("a refused message was sent")
	}
	if n := s.Calls("SendMessageBatch") - before; n != 3 {
		t.Errorf("%d attempts, want 3", n)
	}
	s.Fault(sqs.Faults{Refuse: 0.3, Seed: 3})
	for range 20 {
		if _, err := q.Send(context.Background(), "x"); err != nil {
			t.Error(err)
		}
	}
	s.Fault(sqs.Faults{Lose: 0.5, Seed: 1})
	s.Queue("r", time.Minute, "", 0)
	r := queue.Open(queue.Config{Region: "us-east-1"}, s.URL+"/0/r")
	if unsent, err := r.Send(context.Background(), strings.Split(strings.Repeat("m,", 99)+"m", ",")...); err != nil || len(unsent) != 0 {
		t.Fatal(unsent, err)
	}
	if kept, _ := s.Len("r"); kept < 30 || kept > 70 {
		t.Errorf("%d of 100 messages were kept", kept)
	}
}

// A failing or throttling service is retried, a refusal is not. A long poll that takes longer than other requests may
// is no failure.
func TestWhatIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		wait   time.Duration
		tries  int64
	}{
		"fails":            {503, "", 0, 3},
		"too many":         {429, "", 0, 3},
		"throttled":        {400, `{"__type":"com.amazonaws.sqs#RequestThrottled"}`, 0, 3},
		"refused":          {400, `{"__type":"com.amazonaws.sqs#InvalidAttributeValue"}`, 0, 1},
		"nothing for long": {200, `{}`, 5500 * time.Millisecond, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				tries.Add(1)
				if r.Header.Get("X-Amz-Security-Token") != "longboxtesttoken" {
					t.Error("sent without the token of the session")
				}
				select { // a long poll
				case <-time.After(c.wait):
				case <-r.Context().Done():
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer s.Close()
			q := queue.Open(queue.Config{Region: "us-east-1"}, s.URL+"/0/q")
			_, err := q.Receive(t.Context(), 1, 20*time.Second, time.Second)
			if (err == nil) != (c.status == 200) || tries.Load() != c.tries {
				t.Errorf("%d tries, want %d: %v", tries.Load(), c.tries, err)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := queue.Config{TaskURL: "https://sqs.eu-west-1.amazonaws.com/1/tasks", Window: 8, Resend: time.Minute}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if err := (queue.Config{}).Validate(); err != nil {
		t.Errorf("no queue: %v", err)
	}
	for name, change := range map[string]func(c *queue.Config){
		"TASK_QUEUE_URL": func(c *queue.Config) { c.TaskURL = "tasks" }, "TASK_DLQ_URL": func(c *queue.Config) { c.DeadURL = "x" },
		"OBJECT_QUEUE_URL": func(c *queue.Config) { c.ObjectURL = "//" }, "SQS_ENDPOINT": func(c *queue.Config) { c.Endpoint = "sqs://localhost:4566" },
		"TASK_WINDOW": func(c *queue.Config) { c.Window = 0 }, "TASK_RESEND": func(c *queue.Config) { c.Resend = 0 },
	} {
		for _, taskURL := range []string{good.TaskURL, ""} { // bounds hold without a queue too
			c := good
			c.TaskURL = taskURL
			change(&c)
			if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for address, name := range map[string]string{good.TaskURL: "tasks", "arn:aws:sqs:us-east-1:1:tasks": "tasks", "": ""} {
		if got := queue.Name(address); got != name {
			t.Errorf("%s: %q", address, got)
		}
	}
}
