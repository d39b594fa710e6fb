package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Why explains a failed read of a listed object. A gateway over folders answers 500 for a file that it may not open.
// From what the gateway still shows, Why returns ErrChanged for a link, and ErrClosed for a file that cannot be read.
func (s *Store) Why(ctx context.Context, bucket string, listed Object, err error) error {
	if !InternalError(err) {
		return err
	}
	shown, e := s.open().client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &bucket, Key: &listed.Key})
	switch {
	case e != nil: // the store itself fails
		return err
	case aws.ToInt64(shown.ContentLength) != listed.Size:
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return fmt.Errorf("%w: %w", ErrClosed, err)
}

// Tail reads the last len(into) bytes of an object, or all of a shorter one, with one request. It also returns the
// version. The returned bytes are a part of into.
func (s *Store) Tail(ctx context.Context, bucket, key string, into []byte) ([]byte, Object, error) {
	res, err := s.open().read.get(ctx, bucket, key, http.Header{"Range": {fmt.Sprintf("bytes=-%d", len(into))}})
	if err != nil {
		return nil, Object{}, err
	}
	defer res.Body.Close()
	o := object(key, res)
	n, err := io.ReadFull(res.Body, into)
	if err == nil {
		_, err = io.ReadFull(res.Body, make([]byte, 1)) // reads to EOF, which frees the connection
	}
	switch {
	case err == nil: // the store ignored the range
		return nil, o, fmt.Errorf("read s3://%s/%s: %w", bucket, key, errRanges)
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF) && int64(n) == res.ContentLength:
		return into[:n], o, nil
	}
	return nil, o, fmt.Errorf("read s3://%s/%s: %w", bucket, key, err)
}

// Range opens n bytes from offset of exactly this version of the object, with one request. It returns ErrChanged if the
// version is another one by now. For n < 1 there is no request, because a range cannot be empty.
func (s *Store) Range(ctx context.Context, bucket string, o Object, offset, n int64) (io.ReadCloser, error) {
	if n < 1 {
		return http.NoBody, nil
	}
	header := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", offset, offset+n-1)}}
	if o.ETag != "" {
		header.Set("If-Match", o.ETag)
	} else if !o.Modified.IsZero() {
		// Listings have whole seconds, the comparison is finer: one second later is still this version.
		header.Set("If-Unmodified-Since", o.Modified.Add(time.Second).UTC().Format(http.TimeFormat))
	}
	res, err := s.open().read.get(ctx, bucket, o.Key, header)
	if err != nil {
		return nil, err
	}
	kind := error(nil)
	switch total, ok := totalOf(res.Header.Get("Content-Range")); {
	case ok && o.Size > 0 && total != o.Size:
		kind = ErrChanged
	case res.StatusCode == http.StatusOK && (offset > 0 || n != res.ContentLength):
		kind = errRanges
	case res.ContentLength >= 0 && res.ContentLength < n:
		kind = ErrRange
	}
	if kind != nil {
		res.Body.Close()
		return nil, fmt.Errorf("read s3://%s/%s: %w", bucket, o.Key, kind)
	}
	return res.Body, nil
}

// ReadRange reads a Range into memory.
func (s *Store) ReadRange(ctx context.Context, bucket string, o Object, offset, n int64) ([]byte, error) {
	r, err := s.Range(ctx, bucket, o, offset, n)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("read s3://%s/%s: %w", bucket, o.Key, cut(err))
	}
	return data, nil
}

// Get opens a whole object with one request.
func (s *Store) Get(ctx context.Context, bucket, key string) (io.ReadCloser, Object, error) {
	res, err := s.open().read.get(ctx, bucket, key, nil)
	if err != nil {
		return nil, Object{}, err
	}
	return res.Body, object(key, res), nil
}

// whole is a net/http body that returns ErrCut when it ends early.
type whole struct{ io.ReadCloser }

func (b whole) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrCut
	}
	return n, err
}

// totalOf returns the size after the slash of a Content-Range (RFC 9110 section 14.4).
func totalOf(contentRange string) (int64, bool) {
	_, after, _ := strings.Cut(contentRange, "/")
	n, err := strconv.ParseInt(after, 10, 64)
	return n, err == nil
}
