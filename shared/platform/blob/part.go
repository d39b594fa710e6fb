package blob

import (
	"bytes"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// PutPart stores a part of a multipart upload; the same number again replaces it. All but the last must have 5 MiB.
func (s *Store) PutPart(ctx context.Context, bucket, key, id string, number int, data []byte) (Part, error) {
	out, err := s.open().client.UploadPart(ctx, &s3.UploadPartInput{Bucket: &bucket, Key: &key, UploadId: &id, PartNumber: aws.Int32(int32(number)),
		ContentLength: aws.Int64(int64(len(data))), Body: bytes.NewReader(data)})
	if err != nil {
		return Part{}, explain("store a part of", bucket, key, err)
	}
	return Part{Number: number, Size: int64(len(data)), ETag: aws.ToString(out.ETag)}, nil
}
