package imaging

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/davidbyttow/govips/v2/vips"
)

// start initialises libvips on first use: it takes about 20 ms and 20 MB, which a process without renders should not
// pay.
var start = sync.OnceValue(func() error {
	// Loaders that libvips marks as unsafe for untrusted input stay off; the variable is read during initialisation.
	// Decoded images stay in memory, because the small disk of a function would be the next limit for temporary files.
	for name, value := range map[string]string{"VIPS_BLOCK_UNTRUSTED": "1", "VIPS_DISC_THRESHOLD": "4g"} {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("start libvips: %w", err)
		}
	}
	keepHeapSmall()
	// The messages repeat the returned errors.
	vips.LoggingSettings(func(string, vips.LogLevel, string) {}, vips.LogLevelError)
	err := vips.Startup(&vips.Config{ConcurrencyLevel: 1})
	if err != nil {
		return fmt.Errorf("start libvips: %w", err)
	}
	return nil
})

// undecodable wraps an error of libvips without the stack that govips adds. All threads of a process share one error
// buffer of libvips. If several images fail at once, the text may contain errors of others, and a zero byte if one of
// them has just cleared it.
func undecodable(mediaType string, err error) *Undecodable {
	if errors.Is(err, vips.ErrUnsupportedImageFormat) {
		return &Undecodable{mediaType, errors.New("this build has no decoder for it")}
	}
	text, _, _ := strings.Cut(err.Error(), "\nStack:")
	var lines []string
	for line := range strings.Lines(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")) {
		line = strings.TrimSpace(line)
		// That line follows from reading near the end.
		if line != "" && !slices.Contains(lines, line) && !strings.HasPrefix(line, "source: bad seek") {
			lines = append(lines, line)
		}
	}
	text = strings.Join(lines, "; ")
	const most = 300
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " …"
	}
	if text == "" {
		text = "the decoder gave no reason"
	}
	return &Undecodable{mediaType, errors.New(text)}
}
