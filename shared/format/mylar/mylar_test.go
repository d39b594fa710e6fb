package mylar_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/format/mylar"
)

const whole = `{"version": "1.0.2", "metadata": {"type": "comicSeries", "publisher": "Image", "imprint": null, "name": "Saga",
	"comicid": 46568, "year": 2012, "description_text": "Two  lovers\n\n from two worlds.", "description_formatted": "<p>no</p>", "volume": null,
	"booktype": "Print", "age_rating": "Mature", "collects": null, "comic_image": "https://example.org/a.jpg", "total_issues": 66,
	"publication_run": "May 2012 - Present", "status": "Continuing"}}`

func TestParse(t *testing.T) {
	year, issues := 2012, 66
	want := &mylar.Series{Name: "Saga", Summary: "Two lovers\nfrom two worlds.", Publisher: "Image", Status: "ongoing", AgeRating: "Mature",
		Year: &year, Issues: &issues, ComicID: "46568"}
	got, err := mylar.Parse([]byte("\xef\xbb\xbf" + whole))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

// Mylar wrote version 1.0 with a list around the members, and at first with one description.
func TestParseFirstVersion(t *testing.T) {
	got, err := mylar.Parse([]byte(`{"metadata": [{"type": "comicSeries", "publisher": "Image", "name": "Saga", "year": "2012", "description": "Two lovers.",
		"total_issues": "66", "status": "Continuing"}]}`))
	if err != nil || got.Publisher != "Image" || *got.Year != 2012 || *got.Issues != 66 || got.Summary != "Two lovers." || got.Status != "ongoing" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A description is plain text: its markup is removed.
func TestDescription(t *testing.T) {
	for document, want := range map[string]string{
		`{"metadata": {"description_formatted": "<p>F &amp; G</p><p>H<br>I</p>"}}`:                   "F & G\nH\nI",
		`{"metadata": {"description_text": "<i>T</i>  1 < 2", "description_formatted": "<p>F</p>"}}`: "T 1 < 2",
		`{"metadata": {"description_text": "<p></p>", "description_formatted": "F"}}`:                "F",
		`{"metadata": {"description_text": "None", "description_formatted": null}}`:                  "",
		`{"metadata": {"description_text": "` + strings.Repeat("<b>a</b>", 10<<10) + `"}}`:           strings.Repeat("a", 10<<10),
	} {
		got, err := mylar.Parse([]byte(document))
		if err != nil || got.Summary != want || len(got.Warnings) > 0 {
			t.Errorf("%.90s: %+v, %v; want %.90q", document, got, err, want)
		}
	}
}

func TestParseWarns(t *testing.T) {
	for document, want := range map[string]string{
		`{"metadata": {"year": "soon", "publisher": "P"}}`:                                            "year: soon is not a number from 1000 to 9999",
		`{"metadata": {"status": "Paused", "publisher": "P"}}`:                                        `status: "Paused" is neither Continuing nor Ended`,
		`{"metadata": {"name": ["a"], "publisher": "P"}}`:                                             "name: is not a string",
		`{"metadata": {"imprint": "` + strings.Repeat("a", 501) + `", "publisher": "P"}}`:             "imprint: has 501 bytes, the limit is 500; the rest is left out",
		`{"metadata": {"publisher": "P", "year": "None", "total_issues": 0, "comicid": "46568"}}`:     "",
		`{"metadata": {"publisher": "P", "imprint": "None", "status": "None", "age_rating": "None"}}`: "",
	} {
		got, err := mylar.Parse([]byte(document))
		if err != nil || got.Publisher != "P" || got.Imprint == "None" || strings.Join(got.Warnings, ", ") != want {
			t.Errorf("%.60s: %+v, %v; want the warning %q", document, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for document, want := range map[string]string{
		``:                                    "not the JSON",
		`[1]`:                                 "not the JSON",
		`{"metadata": 1}`:                     "not the JSON",
		`{"metadata": []}`:                    "not the JSON",
		`{"metadata": null}`:                  "no member metadata",
		`{"series": {}}`:                      "no member metadata",
		"<html>":                              "not the JSON",
		strings.Repeat(" ", mylar.MaxBytes+1): "the limit is",
	} {
		if got, err := mylar.Parse([]byte(document)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %+v, %v; want %q", document, got, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"metadata": {"year": "None", "status": 1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := mylar.Parse(data)
		if err != nil {
			return
		}
		if len(s.Summary) > 64<<10 || len(s.Publisher) > 500 || strings.ContainsRune(s.Summary+s.Publisher+s.Name, 0) {
			t.Errorf("%+v", s)
		}
	})
}
