package blob

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// partBytes is the size of the parts of an upload: the memory that one takes. The store allows 10,000 parts.
const partBytes = 8 << 20

// afterWithin is how long it may take to clear up.
const afterWithin = 10 * time.Second

// Afterwards is a context to clear up in what was begun under ctx, whose end may be why; a store that is silent holds
// nobody for long.
func Afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), afterWithin)
}

// Upload stores an object of any size that write writes, part by part. Nobody sees it before it is whole; when write
// or the store fails, nothing remains.
func (s *Store) Upload(ctx context.Context, bucket, key, mediaType string, write func(w *Writer) error) (Object, error) {
	u := &Writer{ctx: ctx, store: s, bucket: bucket, key: key, mediaType: mediaType}
	err := write(u)
	if err == nil {
		err = u.finish()
	}
	if err == nil {
		return Object{Key: key, Size: u.written, ETag: u.etag}, nil
	}
	if u.id != "" {
		// A lifecycle rule of the bucket removes what this cannot.
		after, cancel := Afterwards(ctx)
		defer cancel()
		err = errors.Join(err, s.AbortParts(after, bucket, key, u.id))
	}
	return Object{}, err
}

// Writer is an object on its way to the store.
type Writer struct {
	ctx       context.Context
	store     *Store
	bucket    string
	key       string
	mediaType string
	buffer    bytes.Buffer
	written   int64
	id        string // of a multipart upload, once there is one
	parts     []Part
	etag      string
}

// Write implements io.Writer.
func (u *Writer) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	n, _ := u.buffer.Write(p) // grows or panics
	u.written += int64(n)
	if u.buffer.Len() >= partBytes {
		if err := u.part(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// Written is how many bytes the object has by now.
func (u *Writer) Written() int64 { return u.written }

func (u *Writer) part() error {
	var err error
	if u.id == "" {
		if u.id, err = u.store.BeginParts(u.ctx, u.bucket, u.key, u.mediaType); err != nil {
			return err
		}
	}
	p, err := u.store.PutPart(u.ctx, u.bucket, u.key, u.id, len(u.parts)+1, u.buffer.Bytes())
	if err != nil {
		return err
	}
	u.parts = append(u.parts, p)
	u.buffer.Reset()
	return nil
}

func (u *Writer) finish() error {
	if u.id == "" { // small enough for one request
		out, err := u.store.open().client.PutObject(u.ctx, &s3.PutObjectInput{Bucket: &u.bucket, Key: &u.key, ContentType: &u.mediaType,
			ContentLength: aws.Int64(int64(u.buffer.Len())), Body: bytes.NewReader(u.buffer.Bytes())})
		if err != nil {
			return explain("store", u.bucket, u.key, err)
		}
		u.etag = aws.ToString(out.ETag)
		return nil
	}
	if u.buffer.Len() > 0 {
		if err := u.part(); err != nil {
			return err
		}
	}
	etag, err := u.store.CompleteParts(u.ctx, u.bucket, u.key, u.id, u.parts, false)
	u.etag = etag
	return err
}
