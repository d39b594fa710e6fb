package sevenz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
)

// Invalid or duplicate pairs of coders are errors, not panics.
func TestPairsOfCoders(t *testing.T) {
	t.Parallel()
	for _, pairs := range [][4]byte{{63, 0, 1, 63}, {1, 0, 1, 1}, {1, 0, 2, 0}, {3, 0, 1, 1}, {1, 3, 2, 1}} {
		h := []byte{idHeader, idMainStreams, idPackInfo, 0, 1, idSize, 0, idEnd, idUnpackInfo, idFolder, 1, 0,
			3, 1, 0, 1, 0, 1, 0, pairs[0], pairs[1], pairs[2], pairs[3], // three that copy
			idUnpackSize, 0, 0, 0, idEnd, idEnd, idEnd}
		start := make([]byte, 32)
		copy(start, signature)
		binary.LittleEndian.PutUint64(start[20:], uint64(len(h)))
		binary.LittleEndian.PutUint32(start[28:], crc32.ChecksumIEEE(h))
		binary.LittleEndian.PutUint32(start[8:], crc32.ChecksumIEEE(start[12:]))
		b := append(start, h...)
		if _, err := ReadDirectory(bytes.NewReader(b), int64(len(b)), archive.Limits{}); !errors.As(err, new(*archive.Error)) {
			t.Errorf("%v: %v", pairs, err)
		}
	}
}
