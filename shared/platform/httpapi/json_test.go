package httpapi

import "testing"

func TestWholeRunes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":"plain \u00e9 \\ \n"}`:     `{"a":"plain \u00e9 \\ \n"}`,
		`"\ud83d\ude00 \uD83D\uDE00"`:    `"\ud83d\ude00 \uD83D\uDE00"`,
		`"\ud83d"`:                       `"\ufffd"`,
		`"\ude00\ud83d x"`:               `"\ufffd\ufffd x"`,
		`"\ud83d\ud83d\ude00"`:           `"\ufffd\ud83d\ude00"`,
		`{"\uD800":["\uDFFF","\u0041"]}`: `{"\ufffd":["\ufffd","\u0041"]}`,
		`"a backslash \\ud83d"`:          `"a backslash \\ud83d"`,
		`"\\\ud83d"`:                     `"\\\ufffd"`,
		`"\ud8`:                          `"\ud8`,
		`"\udxyz\`:                       `"\udxyz\`,
	} {
		if got := string(wholeRunes([]byte(in))); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}
