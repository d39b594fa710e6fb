package blob

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Part is an uploaded part of a multipart upload.
type Part struct {
	Number int
	Size   int64
	ETag   string
}

// BeginParts starts a multipart upload and returns its id.
func (s *Store) BeginParts(ctx context.Context, bucket, key, mediaType string) (id string, err error) {
	out, err := s.open().client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key, ContentType: &mediaType})
	if err != nil {
		return "", explain("begin an upload to", bucket, key, err)
	}
	return aws.ToString(out.UploadId), nil
}

// PutPart uploads a part of a multipart upload, and replaces a part with the same number. All but the last must have at
// least 5 MiB.
func (s *Store) PutPart(ctx context.Context, bucket, key, id string, number int, data []byte) (Part, error) {
	out, err := s.open().client.UploadPart(ctx, &s3.UploadPartInput{Bucket: &bucket, Key: &key, UploadId: &id, PartNumber: aws.Int32(int32(number)),
		ContentLength: aws.Int64(int64(len(data))), Body: bytes.NewReader(data)})
	if err != nil {
		return Part{}, explain("store a part of", bucket, key, err)
	}
	return Part{Number: number, Size: int64(len(data)), ETag: aws.ToString(out.ETag)}, nil
}

// Parts returns the uploaded parts by number. It returns ErrNotFound when the upload was completed or aborted.
func (s *Store) Parts(ctx context.Context, bucket, key, id string) ([]Part, error) {
	var parts []Part
	in := &s3.ListPartsInput{Bucket: &bucket, Key: &key, UploadId: &id}
	for {
		out, err := s.open().client.ListParts(ctx, in)
		if err != nil {
			return nil, explain("list the parts of", bucket, key, err)
		}
		for _, p := range out.Parts {
			parts = append(parts, Part{int(aws.ToInt32(p.PartNumber)), aws.ToInt64(p.Size), aws.ToString(p.ETag)})
		}
		if !aws.ToBool(out.IsTruncated) || aws.ToString(out.NextPartNumberMarker) == aws.ToString(in.PartNumberMarker) {
			return parts, nil
		}
		in.PartNumberMarker = out.NextPartNumberMarker
	}
}

// CompleteParts creates the object from its parts and returns the ETag. It returns ErrChanged if onlyNew is set and the
// object exists.
func (s *Store) CompleteParts(ctx context.Context, bucket, key, id string, parts []Part, onlyNew bool) (etag string, err error) {
	done := make([]types.CompletedPart, len(parts))
	for i, p := range parts {
		done[i] = types.CompletedPart{PartNumber: aws.Int32(int32(p.Number)), ETag: &p.ETag}
	}
	in := &s3.CompleteMultipartUploadInput{Bucket: &bucket, Key: &key, UploadId: &id, MultipartUpload: &types.CompletedMultipartUpload{Parts: done}}
	if onlyNew {
		in.IfNoneMatch = aws.String("*")
	}
	out, err := s.open().client.CompleteMultipartUpload(ctx, in, s.open().join)
	if err != nil {
		return "", explain("complete the upload of", bucket, key, err)
	}
	return aws.ToString(out.ETag), nil
}

// AbortParts aborts a multipart upload and deletes its parts. A missing upload is no error.
func (s *Store) AbortParts(ctx context.Context, bucket, key, id string) error {
	_, err := s.open().client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &bucket, Key: &key, UploadId: &id})
	if err != nil {
		if err = explain("abort the upload of", bucket, key, err); !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

// AbortStale aborts the multipart uploads to a bucket that started before a time, and counts them. MinIO lists uploads
// only by key, but aborts old ones by itself. Uploads beyond the first page of the listing, after a thousand newer
// ones, wait: a listing cannot continue from an aborted upload.
func (s *Store) AbortStale(ctx context.Context, bucket string, before time.Time) (n int, err error) {
	for range 100 {
		out, err := s.open().client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: &bucket})
		if err != nil {
			return n, explain("list the uploads to", bucket, "", err)
		}
		found := n
		for _, u := range out.Uploads {
			if u.Initiated == nil || !u.Initiated.Before(before) {
				continue
			}
			if err := s.AbortParts(ctx, bucket, aws.ToString(u.Key), aws.ToString(u.UploadId)); err != nil {
				return n, err
			}
			n++
		}
		if n == found || !aws.ToBool(out.IsTruncated) {
			break
		}
	}
	return n, nil
}
