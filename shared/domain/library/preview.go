package library

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Limits of a preview: a person waits for the response, so it is no full scan.
const (
	previewKeys   = 20_000 // listed
	previewSeries = 1_000  // shown
	previewTime   = 10 * time.Second
	previewBooks  = 5 // shown of each series
)

// PreviewInput describes a library that does not exist yet, as far as a scan needs it.
type PreviewInput struct {
	Body struct {
		Path                    string          `json:"path" minLength:"1" maxLength:"4096"`
		SeriesStrategy          string          `json:"seriesStrategy,omitempty" required:"false" enum:"series_volume,series_volume_chapter,flat,publisher_hierarchy,calibre,custom" doc:"Defaults to series_volume"`
		SeriesConfig            json.RawMessage `json:"seriesConfig,omitempty" required:"false"`
		BookStrategy            string          `json:"bookStrategy,omitempty" required:"false" enum:"filename,metadata_first,smart,series_name,custom" doc:"Defaults to filename"`
		BookConfig              json.RawMessage `json:"bookConfig,omitempty" required:"false"`
		AllowedFormats          []string        `json:"allowedFormats,omitempty" required:"false" maxItems:"16"`
		ExcludedPatterns        string          `json:"excludedPatterns,omitempty" required:"false" maxLength:"20000" nullable:"true"`
		TitlePreprocessingRules []TitleRule     `json:"titlePreprocessingRules,omitempty" required:"false" maxItems:"50"`
	}
}

// Preview is what a scan would find.
type Preview struct {
	DetectedSeries []DetectedSeries `json:"detectedSeries" nullable:"false" doc:"Detected series by name; at most 1,000"`
	TotalSeries    int              `json:"totalSeries"`
	TotalFiles     int              `json:"totalFiles" doc:"Number of books among the listed files"`
	Truncated      bool             `json:"truncated" doc:"Whether there is more: the preview lists at most 20,000 files, for at most 10 seconds, and leaves out folders that cannot be listed"`
}

// DetectedSeries is one series of a preview.
type DetectedSeries struct {
	Name        string            `json:"name"`
	Path        *string           `json:"path" doc:"Folder of the series below the root; null if its files are in several folders"`
	BookCount   int               `json:"bookCount"`
	SampleBooks []string          `json:"sampleBooks" nullable:"false" doc:"Titles of the first five books"`
	Metadata    *DetectedMetadata `json:"metadata"`
}

// DetectedMetadata is the metadata that the folders of a series give.
type DetectedMetadata struct {
	Publisher *string `json:"publisher"`
	Author    *string `json:"author"`
}

// Store lists one folder and, for a preview, everything below it, a page at a time; see [blob.Store].
type Store interface {
	filesystem.Store
	Walk(ctx context.Context, bucket, prefix, startAfter string, counts func(folder string) bool) iter.Seq2[blob.Walked, error]
}

// preview runs the part of a scan that needs only the listing.
func preview(ctx context.Context, d *db.DB, in *PreviewInput, store Store) (*Preview, error) {
	l := blank()
	l.Name, l.SeriesConfig, l.BookConfig = "preview", in.Body.SeriesConfig, in.Body.BookConfig
	l.SeriesStrategy, l.BookStrategy = cmp.Or(in.Body.SeriesStrategy, l.SeriesStrategy), cmp.Or(in.Body.BookStrategy, l.BookStrategy)
	l.AllowedFormats, l.ExcludedPatterns, l.TitlePreprocessingRules = in.Body.AllowedFormats, &in.Body.ExcludedPatterns, in.Body.TitlePreprocessingRules
	at, err := checked(ctx, d, &l, in.Body.Path, store)
	if err != nil {
		return nil, err
	}
	set, _ := strategy.New(l.strategies()) // checked above
	chosen, err := Selection(l.AllowedFormats, in.Body.ExcludedPatterns)
	if err != nil {
		return nil, fault.Invalid("excludedPatterns", "%v", err)
	}
	f := finder{set: set, rules: l.TitlePreprocessingRules, found: map[string]*detected{}}
	ctx, cancel := context.WithTimeout(ctx, previewTime)
	defer cancel()
	mayHold := func(folder string) bool {
		return MayHold(l.AllowedFormats, chosen, strings.TrimPrefix(folder, at.Prefix))
	}
	listed, leftOut := 0, false
	for found, err := range store.Walk(ctx, at.Root.Bucket, at.Prefix, "", mayHold) {
		if err != nil && ctx.Err() != nil && listed > 0 {
			f.Truncated = true
			break
		}
		if err != nil {
			return nil, unlisted(at, err)
		}
		leftOut = leftOut || found.Unlisted != "" && mayHold(found.Unlisted)
		for _, o := range found.Objects {
			if listed++; listed > previewKeys || ctx.Err() != nil {
				f.Truncated = true
				break
			}
			key := strings.TrimPrefix(o.Key, at.Prefix)
			if _, ok := chosen(key); ok {
				f.add(key)
			}
		}
		if f.Truncated {
			break
		}
	}
	f.Truncated = f.Truncated || leftOut
	return f.result(), nil
}

// unlisted turns a failed listing into a fault. Too many closed folders are for an administrator, as in a scan.
func unlisted(at filesystem.Place, err error) error {
	var many *blob.UnlistedError
	if !errors.As(err, &many) {
		return at.Unlisted(err)
	}
	var first []string
	for _, folder := range many.Folders[:min(len(many.Folders), 3)] {
		first = append(first, strings.TrimPrefix(folder, at.Prefix))
	}
	wrong := fault.Invalid("path", "has more than %d folders that cannot be listed, among them %s: check their permissions, that their names are UTF-8, "+
		"and that the storage works", len(many.Folders), strings.Join(first, ", "))
	wrong.Err = err
	return wrong
}

// finder collects the series of a preview.
type finder struct {
	Preview
	set   *strategy.Set
	rules []TitleRule
	found map[string]*detected
}

// detected is a series with the keys of its books.
type detected struct {
	DetectedSeries
	keys []string
}

func (f *finder) add(key string) {
	f.TotalFiles++
	file := f.set.Read(key, nil)
	s := f.found[file.Path]
	if s == nil {
		s = &detected{DetectedSeries: DetectedSeries{Name: CleanTitle(f.rules, file.Name)}}
		if !strings.HasPrefix(file.Path, "/") {
			s.Path = &file.Path
		}
		if file.Publisher != "" || file.Author != "" {
			s.Metadata = &DetectedMetadata{Publisher: emptyIsNil(&file.Publisher), Author: emptyIsNil(&file.Author)}
		}
		f.found[file.Path] = s
	}
	s.keys = append(s.keys, key)
}

// samples returns the titles of the first books of a series.
func (f *finder) samples(s *detected) []string {
	slices.SortFunc(s.keys, naming.CompareFile)
	out := []string{}
	for i, key := range s.keys[:min(len(s.keys), previewBooks)] {
		file := f.set.Read(key, nil)
		title := file.Title
		if f.set.Positioned() {
			title = strategy.Title(s.Name, file.Volume, file.Chapter, i+1, len(s.keys))
		}
		out = append(out, title)
	}
	return out
}

func (f *finder) result() *Preview {
	out := f.Preview
	out.TotalSeries = len(f.found)
	out.DetectedSeries = make([]DetectedSeries, 0, len(f.found))
	for _, s := range f.found {
		s.BookCount, s.SampleBooks = len(s.keys), f.samples(s)
		out.DetectedSeries = append(out.DetectedSeries, s.DetectedSeries)
	}
	slices.SortFunc(out.DetectedSeries, func(a, b DetectedSeries) int {
		if c := naming.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return naming.Compare(deref(a.Path), deref(b.Path))
	})
	if len(out.DetectedSeries) > previewSeries {
		out.DetectedSeries, out.Truncated = out.DetectedSeries[:previewSeries], true
	}
	return &out
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// strategies returns the library's strategies for series, names and numbers.
func (l *Library) strategies() strategy.Options {
	return strategy.Options{Series: l.SeriesStrategy, Book: l.BookStrategy, Number: l.NumberStrategy,
		SeriesConfig: l.SeriesConfig, BookConfig: l.BookConfig, NumberConfig: l.NumberConfig}
}
