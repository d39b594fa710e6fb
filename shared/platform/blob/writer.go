package blob

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// partBytes is the size of the parts of an upload, which is the memory that an upload needs. A store allows 10,000
// parts.
const partBytes = 8 << 20

// afterWithin limits the time for cleaning up.
const afterWithin = 10 * time.Second

// Afterwards returns a context for cleaning up after work under ctx, which may have been cancelled. The time limit is
// for a silent store.
func Afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), afterWithin)
}

// Upload stores an object of any size, written by write, part by part. The object appears only when it is complete. If
// write or the store fails, nothing remains.
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
		// If this fails, a lifecycle rule of the bucket removes the upload.
		after, cancel := Afterwards(ctx)
		defer cancel()
		err = errors.Join(err, s.AbortParts(after, bucket, key, u.id))
	}
	return Object{}, err
}

// Writer is an object that is being uploaded.
type Writer struct {
	ctx       context.Context
	store     *Store
	bucket    string
	key       string
	mediaType string
	buffer    bytes.Buffer
	written   int64
	id        string // multipart upload id, once started
	parts     []Part
	etag      string
}

// Write implements io.Writer.
func (u *Writer) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	n, _ := u.buffer.Write(p) // never fails, it grows or panics
	u.written += int64(n)
	if u.buffer.Len() >= partBytes {
		if err := u.part(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// Written returns the number of bytes written so far.
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

func (u *Writer) finish() (err error) {
	if u.id == "" { // small enough for one request
		u.etag, err = u.store.put(u.ctx, &s3.PutObjectInput{Bucket: &u.bucket, Key: &u.key, ContentType: &u.mediaType,
			ContentLength: aws.Int64(int64(u.buffer.Len())), Body: bytes.NewReader(u.buffer.Bytes())})
		return err
	}
	if u.buffer.Len() > 0 {
		if err := u.part(); err != nil {
			return err
		}
	}
	u.etag, err = u.store.CompleteParts(u.ctx, u.bucket, u.key, u.id, u.parts, false)
	return err
}
