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

// What the keys of page renditions and of exports begin with, which are deleted after some time (Lives). The tenant
// comes after it, because a lifecycle rule of a bucket knows only beginnings.
const (
	Expiring = "page/"
	Exports  = "export/"
)

// Unfinished is how long an upload in parts may take; what is older was begun by a process that died.
const Unfinished = 48 * time.Hour

// Lives says how old an object may become, by what its key begins with; what begins otherwise stays.
var Lives = map[string]time.Duration{Expiring: 30 * 24 * time.Hour, Exports: 24 * time.Hour}

// Prefixes are where everything of a tenant lies in the media bucket: what is kept, what expires, exports.
func Prefixes(tenant uuid.UUID) []string {
	id := tenant.String() + "/"
	return []string{id, Expiring + id, Exports + id}
}

// Deleted counts objects that were deleted.
type Deleted struct{ Objects, Bytes int64 }

// Undeleted is a deletion that the store refused for some of the objects (a lock, a policy): they are left, the others
// are gone.
type Undeleted struct {
	Where   string   // the prefix
	Keys    []string // that are left
	Message string   // what the store says of the first
}

func (e *Undeleted) Error() string {
	return fmt.Sprintf("delete below %s: %d objects are left, the first is %s: %s", e.Where, len(e.Keys), e.Keys[0], e.Message)
}

// DeletePages deletes the objects below a prefix that were stored before a time (zero: all), with one request for
// up to 1,000 of them, and yields the counts of each. What the store refuses to delete keeps nothing else: the first
// such Undeleted is yielded last.
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

// DeleteAll deletes objects below a prefix, up to 1,000, with one request, and counts them; none are no request. Where
// the store refuses some, the error is an Undeleted.
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

// PutFile stores what a file holds, from its beginning.
func (s *Store) PutFile(ctx context.Context, bucket, key, mediaType string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, 0); err != nil {
		return err
	}
	_, err = s.open().client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, ContentType: &mediaType,
		ContentLength: aws.Int64(info.Size()), Body: f})
	if err != nil {
		return explain("store", bucket, key, err)
	}
	return nil
}

// PresignGet is an address from which whoever has it may read the object for a while.
func (s *Store) PresignGet(ctx context.Context, bucket, key string, life time.Duration) (string, error) {
	req, err := s3.NewPresignClient(s.open().client).PresignGetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key}, s3.WithPresignExpires(life))
	if err != nil {
		return "", fmt.Errorf("address of s3://%s/%s: %w", bucket, key, err)
	}
	return req.URL, nil
}
