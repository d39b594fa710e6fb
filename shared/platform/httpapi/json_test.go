package httpapi

import (
	"encoding/json"
	"strings"
	"testing"
)

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

// encoding/json treats names that differ only in case as one, and the last one counts, whichever was validated.
func TestNamesTwice(t *testing.T) {
	t.Parallel()
	for in, refused := range map[string]bool{
		`{"status":"a","STATUS":"b"}`:                    true,
		`{"Status":"a","STATUS":"b"}`:                    true,
		`{"status":"a","\u017ftatus":"b"}`:               true,
		`{"read_status":1,"ReadStatus":2}`:               true,
		`{"scanningConfig":{"scanMode":1,"SCANMODE":2}}`: true,
		`{"sessions":[{"kind":1},{"kind":1,"Kind":2}]}`:  true,
		`{"device":{"id":1,"ID":2}}`:                     true,
		`{"title_preprocessing_rules":[{"a":1,"A":2}]}`:  true,
		`{"status":"a","status_":"b","state":"c"}`:       false,
		`{"read_status":1,"readStatus":2}`:               false,
		`{"sessions":[{"_id":1,"id":2}]}`:                false,
		`{"_name":1,"name":2,"__name":3}`:                false,
		`{"value":{"a":1,"A":2}}`:                        false,
		`[{"a":1,"A":2}]`:                                false,
	} {
		var out any
		if err := jsonFormat.Unmarshal([]byte(in), &out); err != nil != refused {
			t.Errorf("%s: %v, %v", in, out, err)
		}
	}
}

// Free-form values are measured and stored unchanged: < as an escape would take six bytes.
func TestFreeValuesStayAsTheyCame(t *testing.T) {
	t.Parallel()
	var out struct {
		Value   json.RawMessage
		Authors json.RawMessage
	}
	err := jsonFormat.Unmarshal([]byte("{\"value\":\"<b>&\u2028\",\"authors\":[{\"sort_name\":\"<b>\"}]}"), &out)
	if err != nil || string(out.Value) != "\"<b>&\u2028\"" || string(out.Authors) != `[{"sortName":"<b>"}]` {
		t.Errorf("%s %s, %v", out.Value, out.Authors, err)
	}
}

// Commas in strings do not count as values.
func TestTooManyValues(t *testing.T) {
	t.Parallel()
	commas := strings.Repeat(",", maxValues+1)
	for in, want := range map[string]error{
		`{"text":"` + commas + `"}`:                             nil,
		`{"text":"\"` + commas + `\\","more":[1]}`:              nil,
		`{"list":[1` + strings.Repeat(",1", maxValues) + `]}`:   nil,
		`{"list":[1` + strings.Repeat(",1", maxValues+1) + `]}`: errValues,
		`{"text":"\\","list":[1` + commas:                       errValues,
	} {
		var out any
		if err := jsonFormat.Unmarshal([]byte(in), &out); err != want {
			t.Errorf("%.40s of %d bytes: %v, want %v", in, len(in), err, want)
		}
	}
}

func TestBodyIsNoUTF8(t *testing.T) {
	t.Parallel()
	var out any
	if err := jsonFormat.Unmarshal([]byte("{\"name\":\"Ast\xe9rix\"}"), &out); err != errUTF8 {
		t.Errorf("%v, %v", out, err)
	}
	if err := jsonFormat.Unmarshal([]byte("{\"name\":\"Ast\u00e9rix \xff\"}"), &out); err != errUTF8 {
		t.Errorf("%v, %v", out, err)
	}
	if err := jsonFormat.Unmarshal([]byte("{\"name\":\"Ast\u00e9rix\"}"), &out); err != nil {
		t.Error(err)
	}
}

func TestNumbersOutOfRange(t *testing.T) {
	t.Parallel()
	for literal, want := range map[string]string{
		"2147483648": "out of range",
		"1e400":      "out of range",
		"3.0":        "without a point",
		"3E0":        "without a point",
	} {
		if err := outOfRange(&json.UnmarshalTypeError{Value: "number " + literal}); !strings.Contains(err.Error(), literal) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", literal, err)
		}
	}
}
