package main

import (
	"bytes"
	"context"
	"os/exec"
	"time"

	"github.com/longbox/longbox/shared/format/imaging"
)

// images reports the time for covers and renditions of a page, without a bar. The baseline of a cover is
// libjpeg-turbo's own program reducing the same page by 8, including its start.
func images(ctx context.Context, s *system, out *report) error {
	page, err := picture(1600, 2400, 60, 88, 1)
	if err != nil {
		return err
	}
	r := imaging.New(imaging.Config{})
	djpeg, err := exec.LookPath("djpeg")
	if err != nil {
		out.note("no djpeg to compare with: apt-get install libjpeg-turbo-progs")
	}
	var floor []float64
	times := map[string][]float64{}
	specs := []struct {
		name string
		spec imaging.Spec
	}{
		{"cover 300 px JPEG", imaging.Spec{Width: 300, Format: imaging.JPEG}},
		{"page 1200 px WebP", imaging.Spec{Width: 1200, Format: imaging.WebP}},
		{"page 1200 px JPEG", imaging.Spec{Width: 1200, Format: imaging.JPEG}},
	}
	for i := range 26 {
		for _, c := range specs {
			began := time.Now()
			if _, err := r.Render(ctx, page, c.spec); err != nil {
				return err
			}
			if i > 0 { // The first one starts libvips.
				times[c.name] = append(times[c.name], since(began))
			}
		}
		if djpeg != "" {
			cmd := exec.CommandContext(ctx, djpeg, "-scale", "1/8", "-outfile", "/dev/null")
			cmd.Stdin = bytes.NewReader(page)
			began := time.Now()
			if err := cmd.Run(); err != nil {
				return err
			}
			floor = append(floor, since(began))
		}
	}
	out.note("source 1600 x 2400 JPEG of %d bytes", len(page))
	for _, c := range specs {
		if floor != nil && c.spec.Width == 300 {
			out.ratio(c.name+" against djpeg 1/8", times[c.name], floor, 0)
			continue
		}
		out.info(c.name, median(times[c.name]), "ms")
	}
	return nil
}
