package rardecode

import (
	"bytes"
	"errors"
	"testing"
)

// No data passes through more filters than packers write.
func TestChainsOfFiltersAreBounded(t *testing.T) {
	t.Parallel()
	for chained, want := range map[int]error{maxChained: nil, maxChained + 1: ErrTooManyFilters} {
		d := decodeReader{win: []byte("abcd"), size: 4, w: 4}
		for range chained {
			d.fl = append(d.fl, &filterBlock{length: 4, filter: func(b []byte, _ int64) ([]byte, error) { return b, nil }})
		}
		if got, err := d.processFilters(); !errors.Is(err, want) || err == nil && string(got) != "abcd" {
			t.Errorf("%d filters: %q, %v", chained, got, err)
		}
	}
}

// Each channel is a pass over the data, of which there may be four billion.
func TestChannelsAreBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		filter v3Filter
		most   uint32
	}{"delta": {deltaFilterV3, maxDeltaChannels}, "audio": {filterAudioV3, maxAudioChannels}} {
		for channels, good := range map[uint32]bool{0: false, 1: true, c.most: true, c.most + 1: false} {
			if _, err := c.filter(map[int]uint32{0: channels}, nil, make([]byte, 64), 0); (err == nil) != good {
				t.Errorf("%s of %d channels: %v", name, channels, err)
			}
		}
	}
}

// Damaged data can leave no range to count in, and no symbol that is not excluded.
func TestDamagedModel(t *testing.T) {
	t.Parallel()
	coder := rangeCoder{rnge: 9}
	if got := coder.currentCount(10); got < 10 {
		t.Errorf("a count of %d", got)
	}
	var m model
	if err := m.init(bytes.NewReader(make([]byte, 10)), true, 2, 1); err != nil {
		t.Fatal(err)
	}
	m.restart()
	for _, s := range m.a.contextStates(m.c) {
		m.charMask[s.sym] = m.escCount
	}
	if _, err := m.decodeSymbol2(m.c, 1); !errors.Is(err, ErrCorruptPPM) {
		t.Error(err)
	}
}
