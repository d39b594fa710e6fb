package plug

import (
	"encoding/json"
	"testing"
)

// Who writes a plugin knows members and types of JSON, not those of this program.
func TestMisread(t *testing.T) {
	t.Parallel()
	type common struct {
		Title *string `json:"title"`
		Year  int     `json:"year"`
		Score float64 `json:"score"`
	}
	for raw, want := range map[string]string{
		`[1]`:                       "it must be an object, not array",
		`{"title":5}`:               "title must be a string, not number",
		`{"year":"2001"}`:           "year must be a whole number, not string",
		`{"year":20.5}`:             "year must be a whole number, not number 20.5",
		`{"score":"high"}`:          "score must be a number, not string",
		`{"links":true}`:            "links must be an object, not bool",
		`{"list":[{"kept":"yes"}]}`: "kept must be true or false, not string",
		`{"list":{}}`:               "list must be an array, not object",
		`{`:                         "unexpected end of JSON input",
	} {
		var v struct {
			common
			Links *struct{} `json:"links"`
			List  []struct {
				Kept bool `json:"kept"`
			} `json:"list"`
		}
		if err := Misread(json.Unmarshal([]byte(raw), &v)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
}
