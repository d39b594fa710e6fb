package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/uuid"
)

// Key prefixes of page renditions and of exports, which expire (Lives). The tenant follows the prefix, because
// lifecycle rules of a bucket match prefixes only.
const (
	Expiring = "page/"
	Exports  = "export/"
)

// Unfinished limits the duration of a multipart upload. An older one belongs to a dead process.
const Unfinished = 48 * time.Hour

// Lives is the lifetime of objects by key prefix. Objects with other prefixes stay.
var Lives = map[string]time.Duration{Expiring: 30 * 24 * time.Hour, Exports: 24 * time.Hour}

// Prefixes returns the prefixes of a tenant's objects in the media bucket: permanent ones, expiring ones, exports.
func Prefixes(tenant uuid.UUID) []string {
	id := tenant.String() + "/"
	return []string{id, Expiring + id, Exports + id}
}

// Deleted counts deleted objects.
type Deleted struct{ Objects, Bytes int64 }

// Undeleted is the error of a deletion that the store refused for some objects (a lock, a policy). The others were
// deleted.
type Undeleted struct {
	Where   string   // the prefix
	Keys    []string // that remain
	Message string   // the store's message about the first
}

func (e *Undeleted) Error() string {
	return fmt.Sprintf("delete below %s: %d objects are left, the first is %s: %s", e.Where, len(e.Keys), e.Keys[0], e.Message)
}

// DeletePages deletes the objects below a prefix that were stored before a time (zero: all). One request deletes up to
// 1,000, and the counts of each request are yielded. Refused objects do not stop the rest: the first Undeleted error is
// yielded last.
func (s *Store) DeletePages(ctx context.Context, bucket, prefix string, before time.Time) iter.Seq2[Deleted, error] {
	return func(yield func(Deleted, error) bool) {
		var refused error
		for page, err := range s.List(ctx, bucket, prefix, "") {
			if err != nil {
				yield(Deleted{}, err)
				return
			}
			if !before.IsZero() {
				page = slices.DeleteFunc(page, func(o Object) bool { return !o.Modified.Before(before) })
			}
			done, err := s.DeleteAll(ctx, bucket, prefix, page)
			if errors.As(err, new(*Undeleted)) {
				refused, err = cmp.Or(refused, err), nil
			}
			if !yield(done, err) || err != nil {
				return
			}
		}
		if refused != nil {
			yield(Deleted{}, refused)
		}
	}
}

// DeleteAll deletes up to 1,000 objects below a prefix with one request, and counts them. Without objects there is no
// request. If the store refuses some, the error is an Undeleted.
func (s *Store) DeleteAll(ctx context.Context, bucket, prefix string, objects []Object) (Deleted, error) {
	if len(objects) == 0 {
		return Deleted{}, nil
	}
	ids := make([]types.ObjectIdentifier, len(objects))
	for i, o := range objects {
		ids[i].Key = aws.String(o.Key)
	}
	out, err := s.open().client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &bucket, Delete: &types.Delete{Objects: ids, Quiet: aws.Bool(true)}})
	if err != nil {
		return Deleted{}, explain("delete below", bucket, prefix, err)
	}
	left := &Undeleted{Where: "s3://" + bucket + "/" + prefix}
	for _, e := range out.Errors {
		left.Keys = append(left.Keys, aws.ToString(e.Key))
		left.Message = cmp.Or(left.Message, aws.ToString(e.Message), aws.ToString(e.Code))
	}
	var done Deleted
	for _, o := range objects {
		if !slices.Contains(left.Keys, o.Key) {
			done.Objects, done.Bytes = done.Objects+1, done.Bytes+o.Size
		}
	}
	if len(left.Keys) > 0 {
		return done, left
	}
	return done, nil
}

// PutFile stores the content of a file, from its beginning.
func (s *Store) PutFile(ctx context.Context, bucket, key, mediaType string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, 0); err != nil {
		return err
	}
	_, err = s.put(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, ContentType: &mediaType, ContentLength: aws.Int64(info.Size()), Body: f})
	return err
}
