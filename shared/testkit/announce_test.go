package testkit

import "testing"

func TestNamed(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{`{"Records":[{"eventName":"s3:ObjectCreated:Put","s3":{"bucket":{"arn":"arn:aws:s3:::/books/a/1.cbz","name":"media"},"object":{"key":"a/1.cbz","size":1}}}]}`,
			`{"Records":[{"eventName":"s3:ObjectCreated:Put","s3":{"bucket":{"arn":"arn:aws:s3:::/books/a/1.cbz","name":"books"},"object":{"key":"a/1.cbz","size":1}}}]}`},
		{`{"Records":[{"s3":{"bucket":{"arn":"arn:aws:s3:::/books/1.cbz","name":"media"},"object":{"key":"a/b.x"}}}]}`,
			`{"Records":[{"s3":{"bucket":{"arn":"arn:aws:s3:::/books/1.cbz","name":"books"},"object":{"key":"1.cbz"}}}]}`},
		// Of several objects that are deleted at once, each is named by itself.
		{`{"Records":[{"s3":{"bucket":{"arn":"arn:aws:s3:::/books","name":"media"},"object":{"key":"a/b.x"}}}]}`,
			`{"Records":[{"s3":{"bucket":{"arn":"arn:aws:s3:::/books","name":"books"},"object":{"key":"a/b.x"}}}]}`},
		{`{"Records":[{"s3":{"bucket":{"arn":"arn:aws:s3:::books","name":"books"}}}]}`, ""}, // MinIO
		{`{"Event":"s3:TestEvent"}`, ""},
		{"no JSON", ""},
	} {
		want := c[1]
		if want == "" {
			want = c[0]
		}
		if got := named(c[0]); got != want {
			t.Errorf("%s\n%s\n%s", c[0], got, want)
		}
	}
}
