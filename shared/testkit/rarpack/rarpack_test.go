package rarpack_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/longbox/longbox/shared/format/rardecode"
	"github.com/longbox/longbox/shared/testkit/rarpack"
)

func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	random := rand.NewChaCha8([32]byte{byte(seed)})
	random.Read(b)
	return b
}

// lines are text of many short repetitions: all kinds of symbols occur.
func lines(seed uint64, n int) (b []byte) {
	random := rand.New(rand.NewPCG(seed, 1))
	for len(b) < n {
		b = fmt.Appendf(b, "%d lines of %.0f\n", random.IntN(1000), random.ExpFloat64()*1000)
	}
	return b[:n]
}

// book is files of several blocks each, with what is found again in them near and far, and the smallest ones.
func book() []rarpack.File {
	first := noise(1, 400<<10)
	return []rarpack.File{
		{Name: "first.bin", Data: first},
		{Name: "empty"},
		{Name: "lines.txt", Data: lines(1, 300<<10)},
		{Name: "漫画/again.bin", Data: append(noise(2, 100), first[200<<10:]...)},
		{Name: "one", Data: []byte{7}},
		{Name: "zeros", Data: make([]byte, 100<<10)},
		{Name: "first again.bin", Data: first},
		{Name: "lines again.txt", Data: lines(1, 300<<10)},
		{Name: "rising", Data: rising()},
	}
}

// rising has bytes that are each half as frequent as the one before: their code would be deeper than a code may be.
func rising() (b []byte) {
	for i := range 18 {
		b = append(b, bytes.Repeat([]byte{byte(i)}, 1<<i)...)
	}
	random := rand.New(rand.NewPCG(1, 1))
	random.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
	return b
}

func TestReadBack(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]rarpack.Options{
		"solid":                              {Solid: true, Dictionary: 16 << 20},
		"solid, of a small dictionary":       {Solid: true},
		"solid, with a dictionary half used": {Solid: true, Dictionary: 8 << 20, Reach: 300 << 10},
		"each file by itself":                {Dictionary: 4 << 20},
		"with times that are cut short":      {Extra: []byte{2, 3, 2}}, // a record of the modification time without it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := rarpack.Archive(o, book()...)
			if err != nil {
				t.Fatal(err)
			}
			r, err := rardecode.NewReader(bytes.NewReader(b), 4096, 64<<20)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range book() {
				h, err := r.Next()
				if err != nil {
					t.Fatalf("%s: %v", f.Name, err)
				}
				got, err := io.ReadAll(r)
				if err != nil || h.Name != f.Name || !bytes.Equal(got, f.Data) || h.Solid != (o.Solid && i > 0) {
					t.Errorf("%s, solid %v: %d bytes of %d, %v", h.Name, h.Solid, len(got), len(f.Data), err)
				}
				t.Logf("%s: %d of %d", h.Name, h.PackedSize, h.UnPackedSize)
			}
			if _, err := r.Next(); err != io.EOF {
				t.Errorf("after the last file: %v", err)
			}
		})
	}
}

// TestRepetitions proves of noise, which nothing packs, where its bytes must have come from.
func TestRepetitions(t *testing.T) {
	t.Parallel()
	const size = 256 << 10
	files := []rarpack.File{{Name: "1", Data: noise(1, size)}, {Name: "2", Data: noise(2, size)}, {Name: "3", Data: noise(1, size)}}
	for name, c := range map[string]struct {
		o        rarpack.Options
		repeated bool
	}{
		"solid":                   {rarpack.Options{Solid: true, Dictionary: 4 << 20}, true},
		"dictionary of one file":  {rarpack.Options{Solid: true, Dictionary: size}, false},
		"reach of less than both": {rarpack.Options{Solid: true, Dictionary: 4 << 20, Reach: 2*size - 100}, false},
		"not solid":               {rarpack.Options{Dictionary: 4 << 20}, false},
	} {
		b, err := rarpack.Archive(c.o, files...)
		if err != nil {
			t.Fatal(err)
		}
		if repeated := len(b) < 2*size+size/4; repeated != c.repeated || !repeated && len(b) < 3*size {
			t.Errorf("%s: three files of %d bytes take %d", name, size, len(b))
		}
	}
}

func TestDictionary(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{1, 64 << 10, 3 << 20, 8 << 30} {
		if _, err := rarpack.NewWriter(io.Discard, rarpack.Options{Dictionary: n}); err == nil {
			t.Errorf("a dictionary of %d bytes", n)
		}
	}
}
