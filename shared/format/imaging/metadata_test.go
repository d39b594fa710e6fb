package imaging

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"testing"
)

// withSegment inserts an application segment behind the start of a JPEG.
func withSegment(src []byte, marker byte, payload []byte) []byte {
	seg := binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(payload)+2))
	return bytes.Join([][]byte{src[:2], seg, payload, src[2:]}, nil)
}

// withOrientation adds EXIF data that hold nothing but the orientation.
func withOrientation(src []byte, orientation byte) []byte {
	tiff := []byte("MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00")
	tiff = append(tiff, orientation, 0, 0, 0, 0, 0, 0)
	return withSegment(src, 0xe1, append([]byte("Exif\x00\x00"), tiff...))
}

func TestRenderTurnsUpright(t *testing.T) {
	t.Parallel()
	src := jpegOf(t, halves(80, 40, red, blue))
	tests := []struct {
		orientation byte
		w, h        int
		first, last image.Point // where red and blue must be
	}{
		{1, 40, 20, image.Pt(5, 10), image.Pt(35, 10)},
		{2, 40, 20, image.Pt(35, 10), image.Pt(5, 10)},
		{3, 40, 20, image.Pt(35, 10), image.Pt(5, 10)},
		{6, 20, 40, image.Pt(10, 5), image.Pt(10, 35)},
		{8, 20, 40, image.Pt(10, 35), image.Pt(10, 5)},
		{9, 40, 20, image.Pt(5, 10), image.Pt(35, 10)}, // not defined: as stored
	}
	for _, tt := range tests {
		res := mustRender(t, withOrientation(src, tt.orientation), Spec{Width: tt.w, Format: JPEG})
		if res.Width != tt.w || res.Height != tt.h || res.SourceWidth != 2*tt.w {
			t.Errorf("orientation %d: %d x %d of width %d", tt.orientation, res.Width, res.Height, res.SourceWidth)
			continue
		}
		img := pixels(t, res)
		expectColour(t, img, tt.first.X, tt.first.Y, red, 12)
		expectColour(t, img, tt.last.X, tt.last.Y, blue, 12)
		if bytes.Contains(res.Bytes, []byte("Exif")) {
			t.Errorf("orientation %d: metadata in the output", tt.orientation)
		}
	}
}

// swappedProfile is an ICC profile for the given colour space whose red and
// blue primaries are exchanged, so that its effect cannot be overlooked.
func swappedProfile(space string) []byte {
	xyz := func(v ...uint32) []byte {
		b := []byte("XYZ \x00\x00\x00\x00")
		for _, n := range v {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		return b
	}
	curve := []byte("curv\x00\x00\x00\x00\x00\x00\x00\x01\x02\x33\x00\x00") // gamma 2.2
	tags := []struct {
		name string
		data []byte
	}{
		{"desc", append([]byte("desc\x00\x00\x00\x00\x00\x00\x00\x02x"), make([]byte, 79)...)},
		{"wtpt", xyz(0xf6d6, 0x10000, 0xd32d)},
		{"rXYZ", xyz(0x24a0, 0x0f84, 0xb6cf)}, // blue's
		{"gXYZ", xyz(0x6299, 0xb785, 0x18da)},
		{"bXYZ", xyz(0x6fa2, 0x38f5, 0x0390)}, // red's
		{"rTRC", curve}, {"gTRC", curve}, {"bTRC", curve}, {"kTRC", curve},
	}
	table := binary.BigEndian.AppendUint32(nil, uint32(len(tags)))
	var data []byte
	at := 128 + 4 + 12*len(tags)
	for _, tag := range tags {
		table = append(table, tag.name...)
		table = binary.BigEndian.AppendUint32(table, uint32(at+len(data)))
		table = binary.BigEndian.AppendUint32(table, uint32(len(tag.data)))
		data = append(data, tag.data...)
		for len(data)%4 != 0 {
			data = append(data, 0)
		}
	}
	head := make([]byte, 128)
	binary.BigEndian.PutUint32(head, uint32(at+len(data)))
	copy(head[8:], "\x02\x10\x00\x00mntr"+space+"XYZ ")
	copy(head[36:], "acsp")
	copy(head[68:], "\x00\x00\xf6\xd6\x00\x01\x00\x00\x00\x00\xd3\x2d")
	return bytes.Join([][]byte{head, table, data}, nil)
}

func TestRenderAppliesProfile(t *testing.T) {
	t.Parallel()
	src := jpegOf(t, halves(80, 40, red, blue))
	icc := func(profile []byte) []byte {
		return withSegment(src, 0xe2, append([]byte("ICC_PROFILE\x00\x01\x01"), profile...))
	}
	tests := []struct {
		name        string
		src         []byte
		left, right color.NRGBA
	}{
		{"colour profile", icc(swappedProfile("RGB ")), blue, red},
		{"grey profile on a colour page is ignored", icc(swappedProfile("GRAY")), red, blue},
		{"broken profile is ignored", icc(bytes.Repeat([]byte("RGB "), 100)), red, blue},
		{"cut profile is ignored", icc(swappedProfile("RGB ")[:150]), red, blue},
	}
	for _, tt := range tests {
		for _, format := range []string{JPEG, PNG, WebP} {
			res := mustRender(t, tt.src, Spec{Width: 40, Format: format})
			for _, trace := range []string{"ICC_PROFILE", "iCCP", "ICCP", "acsp"} {
				if bytes.Contains(res.Bytes, []byte(trace)) {
					t.Errorf("%s: %s in the %s", tt.name, trace, format)
				}
			}
			img := pixels(t, res)
			t.Run(tt.name+" "+format, func(t *testing.T) {
				expectColour(t, img, 5, 10, tt.left, 20)
				expectColour(t, img, 35, 10, tt.right, 20)
			})
		}
	}
}
