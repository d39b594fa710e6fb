package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// partBytes is the size of the parts of an upload: the memory that one takes. The store allows 10,000 parts.
const partBytes = 8 << 20

// afterWithin is how long it may take to clear up.
const afterWithin = 10 * time.Second

// Afterwards is a context to clear up in what was begun under ctx, whose end may be why; a store that is silent holds nobody for long.
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
	if u.id != nil {
		// A lifecycle rule of the bucket removes what this cannot.
		after, cancel := Afterwards(ctx)
		defer cancel()
		_, abort := s.open().client.AbortMultipartUpload(after, &s3.AbortMultipartUploadInput{Bucket: &bucket, Key: &key, UploadId: u.id})
		if abort != nil {
			err = errors.Join(err, explain("give up storing", bucket, key, abort))
		}
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
	id        *string
	parts     []types.CompletedPart
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
	if u.id == nil {
		out, err := u.store.open().client.CreateMultipartUpload(u.ctx, &s3.CreateMultipartUploadInput{Bucket: &u.bucket, Key: &u.key, ContentType: &u.mediaType})
		if err != nil {
			return explain("store", u.bucket, u.key, err)
		}
		u.id = out.UploadId
	}
	number := aws.Int32(int32(len(u.parts) + 1))
	out, err := u.store.open().client.UploadPart(u.ctx, &s3.UploadPartInput{Bucket: &u.bucket, Key: &u.key, UploadId: u.id, PartNumber: number,
		ContentLength: aws.Int64(int64(u.buffer.Len())), Body: bytes.NewReader(u.buffer.Bytes())})
	if err != nil {
		return explain(fmt.Sprintf("store part %d of", *number), u.bucket, u.key, err)
	}
	u.parts = append(u.parts, types.CompletedPart{ETag: out.ETag, PartNumber: number})
	u.buffer.Reset()
	return nil
}

func (u *Writer) finish() error {
	if u.id == nil { // small enough for one request
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
	out, err := u.store.open().client.CompleteMultipartUpload(u.ctx, &s3.CompleteMultipartUploadInput{Bucket: &u.bucket, Key: &u.key, UploadId: u.id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts}}, u.store.open().join)
	if err != nil {
		return explain("store", u.bucket, u.key, err)
	}
	u.etag = aws.ToString(out.ETag)
	return nil
}
