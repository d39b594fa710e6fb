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

func TestExponents(t *testing.T) {
	t.Parallel()
	for in, refused := range map[string]bool{
		`{"a":[1e-16000]}`:        true,
		`0E-401`:                  true,
		`1e-99999999999999999999`: true,
		`[1e-324, 1.5E+2, 1e-7]`:  false,
		`{"a":"1e-16000"}`:        false,
		`[1e-16000`:               true,
	} {
		if err := checkExponents([]byte(in)); err != nil != refused {
			t.Errorf("%s: %v", in, err)
		}
	}
}
