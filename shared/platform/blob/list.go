package blob

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// List yields the objects below a prefix in key order, page by page of 1,000 and one request each, from the
// first key after startAfter.
func (s *Store) List(ctx context.Context, bucket, prefix, startAfter string) iter.Seq2[[]Object, error] {
	return func(yield func([]Object, error) bool) {
		in := &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix}
		if startAfter != "" {
			in.StartAfter = &startAfter
		}
		for {
			out, err := s.open().client.ListObjectsV2(ctx, in)
			if err != nil {
				yield(nil, explain("list", bucket, prefix, err))
				return
			}
			page := make([]Object, len(out.Contents))
			for i, c := range out.Contents {
				page[i] = listed(c)
			}
			if !yield(page, nil) || !aws.ToBool(out.IsTruncated) {
				return
			}
			in.ContinuationToken = out.NextContinuationToken
		}
	}
}

// listed is an entry of a listing.
func listed(c types.Object) Object {
	return Object{Key: aws.ToString(c.Key), Size: aws.ToInt64(c.Size), ETag: aws.ToString(c.ETag), Modified: aws.ToTime(c.LastModified)}
}

// Folders lists one level below a prefix: the folders (whole prefixes with the slash) and the objects, at most
// a thousand of both; more says that there are others.
func (s *Store) Folders(ctx context.Context, bucket, prefix string) (folders []string, objects []Object, more bool, err error) {
	out, err := s.open().client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix, Delimiter: aws.String("/")})
	if err != nil {
		return nil, nil, false, explain("list", bucket, prefix, err)
	}
	for _, p := range out.CommonPrefixes {
		folders = append(folders, aws.ToString(p.Prefix))
	}
	for _, c := range out.Contents {
		if o := listed(c); !strings.HasSuffix(o.Key, "/") {
			objects = append(objects, o)
		}
	}
	return folders, objects, aws.ToBool(out.IsTruncated), nil
}

// DeleteOlder deletes the objects below a prefix that were stored before a time, and says how many.
func (s *Store) DeleteOlder(ctx context.Context, bucket, prefix string, before time.Time) (int, error) {
	n := 0
	for page, err := range s.List(ctx, bucket, prefix, "") {
		if err != nil {
			return n, err
		}
		for _, o := range page {
			if !o.Modified.Before(before) {
				continue
			}
			if err := s.Delete(ctx, bucket, o.Key); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}
