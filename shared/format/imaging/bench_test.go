package imaging

import (
	"bytes"
	"context"
	"os/exec"
	"testing"
)

func benchmark(b *testing.B, spec Spec) {
	src := pageJPEG()
	r := New(Config{})
	var last Result
	for b.Loop() {
		res, err := r.Render(context.Background(), src, spec)
		if err != nil {
			b.Fatal(err)
		}
		last = res
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/op")
	b.ReportMetric(float64(len(last.Bytes)), "out-bytes")
	b.ReportMetric(float64(len(src)), "src-bytes")
}

func BenchmarkCover300(b *testing.B) { benchmark(b, Spec{Width: 300, Format: JPEG}) }

func BenchmarkCover300WebP(b *testing.B) { benchmark(b, Spec{Width: 300, Format: WebP}) }

func BenchmarkPage1200WebP(b *testing.B) { benchmark(b, Spec{Width: 1200, Format: WebP}) }

func BenchmarkPage1200JPEG(b *testing.B) { benchmark(b, Spec{Width: 1200, Format: JPEG}) }

// BenchmarkDjpegFloor is the baseline for a cover: libjpeg-turbo's own program reducing the same page by 8, including
// its start. Package libjpeg-turbo-progs.
func BenchmarkDjpegFloor(b *testing.B) {
	djpeg, err := exec.LookPath("djpeg")
	if err != nil {
		b.Skip("djpeg is not installed: apt-get install libjpeg-turbo-progs")
	}
	for b.Loop() {
		cmd := exec.Command(djpeg, "-scale", "1/8", "-outfile", "/dev/null")
		cmd.Stdin = bytes.NewReader(pageJPEG())
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/op")
}
