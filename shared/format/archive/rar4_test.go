package archive

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"testing"
)

// rar4 is the block of a file of RAR 4 with this packed data, and its entry.
func rar4(packed, plain []byte) (Entry, []byte) {
	h := make([]byte, 32)
	h[2] = 0x74
	binary.LittleEndian.PutUint16(h[3:], 0x8000)
	binary.LittleEndian.PutUint16(h[5:], 37)
	binary.LittleEndian.PutUint32(h[7:], uint32(len(packed)))
	binary.LittleEndian.PutUint32(h[11:], uint32(len(plain)))
	binary.LittleEndian.PutUint32(h[16:], crc32.ChecksumIEEE(plain))
	h[15], h[24], h[25] = 3, 29, 0x33
	binary.LittleEndian.PutUint16(h[26:], 5)
	h = append(h, "1.jpg"...)
	binary.LittleEndian.PutUint16(h, uint16(crc32.ChecksumIEEE(h[2:])))
	all := append(h, packed...)
	return Entry{Name: "1.jpg", Size: int64(len(plain)), Method: RAR4, Length: int64(len(all)), CompressedSize: int64(len(packed)),
		CRC32: crc32.ChecksumIEEE(plain)}, all
}

// bitstream is written from the highest bit of each byte.
type bitstream struct {
	b []byte
	n int
}

func (s *bitstream) put(v, bits int) {
	for bits--; bits >= 0; bits-- {
		if s.n%8 == 0 {
			s.b = append(s.b, 0)
		}
		s.b[s.n/8] |= byte(v>>bits&1) << (7 - s.n%8)
		s.n++
	}
}

// Meanings of the codes of lz4.
const (
	filter4  = 0b0
	a4       = 0b10
	end4     = 0b11
	file4    = 0b01 // after end4: the file and the block end
	another4 = 0b1  // after end4: another block follows
)

// lz4 begins a block that is not of PPM, with the codes above.
func lz4() *bitstream {
	s := &bitstream{}
	s.put(0, 2) // not PPM, and no table before
	for symbol := range 20 {
		s.put(map[int]int{0: 2, 1: 2, 2: 2, 19: 2}[symbol], 4)
	}
	zeros := func(n int) { s.put(0b11, 2); s.put(n-11, 7) }
	zeros(65)
	s.put(0b10, 2) // the letter A has two bits
	zeros(138)
	zeros(52)
	s.put(0b10, 2) // the end of the block
	s.put(0b01, 2) // a filter: one bit
	zeros(135)
	zeros(11)
	return s
}

func unpack(e Entry, block []byte, lim Limits) ([]byte, error) {
	r, err := e.Open(bytes.NewReader(block), lim)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Programs for the VM of RAR 4 do not run: each took 25 million steps, and thousands of them take only a few bytes.
func TestProgramsOfRAR4DoNotRun(t *testing.T) {
	t.Parallel()
	s := lz4()
	s.put(a4, 2)
	s.put(end4, 2)
	s.put(file4, 2)
	s.put(0, 32)
	e, block := rar4(s.b, []byte("A"))
	if got, err := unpack(e, block, Limits{}); err != nil || string(got) != "A" {
		t.Fatalf("without a program: %q, %v", got, err)
	}
	s = lz4()
	s.put(filter4, 1)
	s.put(0xa5, 8) // a new filter with a length, described in six bytes: from here, of one byte, by a program of three
	for _, number := range []int{0, 0, 1, 3} {
		s.put(number, 6)
	}
	s.put(0x404000, 24) // its checksum, and a jump to itself
	s.put(a4, 2)
	s.put(end4, 2)
	s.put(file4, 2)
	s.put(0, 32)
	e, block = rar4(s.b, []byte("A"))
	if got, err := unpack(e, block, Limits{}); kindOf(err) != Corrupt {
		t.Errorf("%q, %v", got, err)
	}
}

// A block of RAR 4 declares the size of its model, in any file of the archive: 600 bytes took 342 MB.
func TestModelOfRAR4IsBounded(t *testing.T) {
	t.Parallel()
	lim := Limits{DictionaryBytes: 16 << 20}
	second := lz4()
	second.put(end4, 2)
	second.put(another4, 1)
	for name, before := range map[string][]byte{"the first block": nil, "the second": second.b} {
		// Entries that are small enough are not pages.
		for megabytes, want := range map[int]Kind{1: Corrupt, 16: Corrupt, 17: TooLarge, 256: TooLarge} {
			data := append(append(bytes.Clone(before), 0xa4, byte(megabytes-1)), bytes.Repeat([]byte{0x5a, 0x13, 0x77}, 200)...)
			e, block := rar4(data, make([]byte, 5000))
			if _, err := unpack(e, block, lim); kindOf(err) != want {
				t.Errorf("%s, %d MB: %v, want %s", name, megabytes, err, want)
			}
		}
	}
	e, block := rar4(append([]byte{0xa4, 0}, bytes.Repeat([]byte{0x5a, 0x13, 0x77}, 200)...), make([]byte, 5000))
	for _, cut := range []int{0, 3, 7, 36, 37, 38} {
		if got, err := unpack(e, block[:cut], lim); err == nil {
			t.Errorf("read %d bytes of a block as %d", cut, len(got))
		}
	}
}
