package digest_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/longbox/longbox/shared/domain/koreader/digest"
)

// partial is KOReader's own algorithm (util.partialMD5) on a whole file: lshift(1024, 2*i) is 0 for -1, since it counts
// modulo 32.
func partial(file *bytes.Reader) string {
	sum := md5.New()
	for i := -1; i <= 10; i++ {
		offset := int64(0)
		if i >= 0 {
			offset = 1024 << (2 * i)
		}
		sample := make([]byte, 1024)
		n, err := file.ReadAt(sample, offset)
		if n == 0 && err == io.EOF {
			break
		}
		sum.Write(sample[:n])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func TestDigest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 17<<20)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	for _, size := range []int{0, 1, 1023, 1024, 1025, 2048, 4096, 4097, 5000, 1 << 16, 1<<16 + 1, 1<<16 + 1023, 1<<16 + 1024, 1<<16 + 1025, 1 << 18, 1<<18 + 5, 1<<20 + 1, 5 << 20, len(data)} {
		file := bytes.NewReader(data[:size])
		reads := 0
		got, err := digest.Of(int64(size), func(offset, n int64) ([]byte, error) {
			reads++
			part := make([]byte, n)
			_, err := file.ReadAt(part, offset)
			return part, err
		})
		if want := partial(file); err != nil || got != want {
			t.Errorf("%d bytes: %s, want %s, %v", size, got, want, err)
		}
		if most := 5; reads > most {
			t.Errorf("%d bytes: %d reads", size, reads)
		}
	}
	if got, _ := digest.Of(0, nil); got != "d41d8cd98f00b204e9800998ecf8427e" {
		t.Errorf("of nothing: %s", got)
	}
	for offset := range int64(2) { // in the first read, and in a later one
		_, err := digest.Of(1<<20, func(at, n int64) ([]byte, error) {
			if at >= offset {
				return nil, io.ErrClosedPipe
			}
			return make([]byte, n), nil
		})
		if err != io.ErrClosedPipe {
			t.Errorf("a read that fails: %v", err)
		}
	}
	if _, err := digest.Of(1<<20, func(int64, int64) ([]byte, error) { return nil, nil }); err == nil {
		t.Error("a file that is shorter has a digest")
	}
}
