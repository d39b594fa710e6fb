package handlebars_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/format/handlebars"
)

var about = func() (v any) {
	if err := json.Unmarshal([]byte(`{"type": "series", "bookCount": 12, "metadata": {"title": "Tom & <Jerry>", "year": 1999, "summary": "", "genres": ["Drama", "War"], "titleLock": true,
		"status": null, "tags": [], "authors": [{"name": "A", "role": "writer"}, {"name": "B", "role": "editor"}]}, "externalIds": {"plugin:test": {"id": "7"}, "comicinfo": {"id": "x"}},
		"customMetadata": {"my_key": {"a": "b"}}}`), &v); err != nil {
		panic(err)
	}
	return v
}()

func TestTemplates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{{metadata.title}}":                                                                                          "Tom & <Jerry>",
		"{{{metadata.title}}}":                                                                                        "Tom & <Jerry>",
		"{{metadata.title}} {{metadata.year}}":                                                                        "Tom & <Jerry> 1999",
		"{{none.none.none}}":                                                                                          "",
		"{{uppercase metadata.title}}":                                                                                "TOM & <JERRY>",
		"{{lowercase metadata.title}}":                                                                                "tom & <jerry>",
		`{{capitalize "éclair"}}`:                                                                                     "Éclair",
		`{{truncate metadata.title 3 "…"}}`:                                                                           "Tom…",
		`{{replace metadata.title "&" "and"}}`:                                                                        "Tom and <Jerry>",
		`{{join metadata.genres ", "}}`:                                                                               "Drama, War",
		`{{join (split "a-b-c" "-") "+"}}`:                                                                            "a+b+c",
		`{{urlencode metadata.title}}`:                                                                                "Tom+%26+%3CJerry%3E",
		`{{padStart bookCount 5 "0"}}`:                                                                                "00012",
		`{{default metadata.status "unknown"}}`:                                                                       "unknown",
		`{{length metadata.genres}} {{length metadata.title}}`:                                                        "2 13",
		`{{math bookCount "+" 3}} {{math bookCount "/" 0}}`:                                                           "15 ",
		`{{#if metadata.status}}a{{else}}b{{/if}}`:                                                                    "b",
		`{{#exists metadata.year}}a{{/exists}}`:                                                                       "a",
		`{{#ifEquals metadata.year 1999}}a{{else}}b{{/ifEquals}}`:                                                     "a",
		`{{#ifNotEquals type "series"}}a{{else}}b{{/ifNotEquals}}`:                                                    "b",
		`{{#gt bookCount 5}}many{{/gt}}{{#lt bookCount 5}}few{{/lt}}`:                                                 "many",
		`{{#and metadata.title metadata.status}}a{{else}}b{{/and}}`:                                                   "b",
		`{{#or metadata.title metadata.status}}a{{else}}b{{/or}}`:                                                     "a",
		`{{#includes metadata.genres "War"}}a{{else}}b{{/includes}}`:                                                  "a",
		`{{#each metadata.genres}}{{this}} {{/each}}`:                                                                 "Drama War ",
		`{{#with metadata}}{{year}}{{/with}}`:                                                                         "1999",
		`{{lookup metadata "year"}}`:                                                                                  "1999",
		"{{!a}}x{{!-- b }} {{c}} --}}y{{~! c ~}}  z":                                                                  "xyz",
		" a {{~metadata.year~}} b ":                                                                                   " a1999b ",
		"{{~#if type~}} x {{~else~}} y {{~/if~}}":                                                                     "x",
		"{{&metadata.title}} {{ metadata/year }} {{metadata.[year]}}":                                                 "Tom & <Jerry> 1999 1999",
		"{{externalIds.[plugin:test].id}}":                                                                            "7",
		"{{#each metadata.authors}}{{@index}}{{name}}{{#unless @last}}, {{/unless}}{{/each}}":                         "0A, 1B",
		"{{#each metadata.authors}}{{../bookCount}}{{@root.type}} {{/each}}":                                          "12series 12series ",
		"{{#each externalIds}}{{@key}}={{id}} {{/each}}":                                                              "comicinfo=x plugin:test=7 ",
		"{{#each metadata.tags}}a{{else}}none{{/each}}":                                                               "none",
		"{{#metadata.genres}}{{.}}{{/metadata.genres}}{{^metadata.tags}}none{{/metadata.tags}}":                       "DramaWarnone",
		"{{#metadata}}{{year}}{{/metadata}}{{#none}}x{{/none}}":                                                       "1999",
		"{{#if metadata.status}}a{{else if metadata.year}}b{{else}}c{{/if}}":                                          "b",
		"{{#if metadata.status}}a{{else if metadata.tags}}b{{else}}c{{/if}}":                                          "c",
		`{{#if (gt bookCount 5)}}many{{/if}}`:                                                                         "many",
		`{{#if (and (gt bookCount 5) (exists metadata.status))}}a{{else}}b{{/if}}`:                                    "b",
		`{{uppercase (truncate (default metadata.status "unknown") 3)}}`:                                              "UNK",
		`{{"a }} b"}} {{'it"s'}} {{5}} {{true}} {{null}}`:                                                             `a }} b it"s 5 true `,
		"{{metadata.genres}} {{metadata.genres.0}} {{metadata.genres.length}} {{metadata.titleLock}}{{metadata}}":     "Drama,War Drama 2 true",
		"{{this.type}} {{./type}} {{../type}}":                                                                        "series series ",
		"{{capitalize \"\xff\"}}":                                                                                     "\xff",
		"{{#each metadata.authors}}{{#with this}}{{@index}}{{name}}{{/with}}{{/each}}":                                "0A1B",
		"{{#if metadata.status}}{{/if}}a {{~{type}~}} b{{~{ type }}} {{{type}~}} c":                                   "aseriesbseries seriesc",
		"{{@}}{{@none}}{{@root.type}}":                                                                                "series",
		"{{#each metadata.authors}}{{#each @root.metadata.genres}}{{@../index}}{{@index}}{{@key}} {{/each}}{{/each}}": "000 011 100 111 ",
		"{{#each metadata.authors}}{{#if @first}}first {{/if}}{{name}}{{/each}}":                                      "first AB",
		"{{metadata.genres.[-1]}}{{metadata.genres.2}}{{metadata.genres.1}}":                                          "War",
		"{{#with none}}a{{else}}b{{/with}}{{#with metadata}}{{#with ..}}{{type}}{{/with}}{{/with}}":                   "bseries",
		"{{^if metadata.year}}a{{else}}b{{/if}}{{#if metadata.status}}a{{^}}c{{/ if}}":                                "bc",
		`{{#if 0}}a{{else}}b{{/if}}{{#if ""}}a{{else}}b{{/if}}{{#unless 0}}c{{/unless}}`:                              "bbc",
		`{{math 1000000 "*" 1000000}} {{math 7 "-" 9}} {{math 7 "%" 4}} {{math "a" "+" 1}} {{math 1 "^" 2}}`:          "1000000000000 -2 3  ",
		`{{-5}} {{1.5}} {{false}} {{inf}} {{1e5}}`:                                                                    "-5 1.5 false  ",
		`{{trim " a b "}}.`: "a b.",
		`{{default metadata.summary "none"}} {{default 0 "none"}}`:                                                                                      "none 0",
		`{{#exists metadata.summary}}a{{/exists}}{{#exists metadata.status}}b{{/exists}}{{#exists 0}}c{{/exists}}{{#exists metadata.tags}}d{{/exists}}`: "cd",
		`{{#ifEquals type}}a{{/ifEquals}}{{#ifNotEquals type}}b{{/ifNotEquals}}{{#includes type}}c{{/includes}}{{#gt 1}}d{{/gt}}`:                       "",
		`{{#gt 5 5}}a{{/gt}}{{#lt 5 5}}b{{/lt}}{{#lt "a" 5}}c{{/lt}}{{#gt 5 "a"}}d{{/gt}}{{#lt 4.5 "5"}}e{{/lt}}`:                                       "e",
		`{{#includes metadata.genres "Wa"}}a{{/includes}}{{#includes type "series"}}b{{/includes}}{{join type ","}}`:                                    "bseries",
		`{{truncate "ééé" 2 "…"}} {{truncate "ééé" 3 "…"}} {{truncate "abc" 0}}.`:                                                                       "éé… ééé .",
		`{{replace "abc" "" "x"}} {{replace "abc" "b" ""}}`:                                                                                             "abc ac",
		`{{padStart "é" 2 "0"}} {{padStart 1 3 "ab"}} {{padStart 1 3}} {{length (padStart 1 1000)}}`:                                                    "0é aa1   1 101",
		`{{length "é"}} {{length customMetadata}} {{length none}}`:                                                                                      "1 1 0",
		"a{{! don't }}b{{~! don't }}c {{!-- a --~}} d {{~!-- }} --}}e":                                                                                  "abc de",
		"{{customMetadata.[no such]}}{{metadata.[genres]/0}}":                                                                                           "Drama",
		`{{#each (split "a,b" ",")}}{{this}};{{/each}}{{length (split "" ",")}}`:                                                                        "a;b;1",
		"{{length}} {{lookup}}": " ",
		"":                      "", "plain { text } }}": "plain { text } }}",
	} {
		parsed, err := handlebars.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := parsed.Execute(about); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestWrongTemplates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{{": "not closed", "a\n{{{x}}": "line 2", "{{#if a}}": "not closed by {{/if}}", "{{#if a}}{{/unless}}": "not closed by {{/if}}", "{{/if}}": "does not belong to a block",
		"{{else}}": "does not belong", "{{}}": "empty", "{{> part}}": "not supported", "{{a b)}}": "not understood", "{{a (b}}": "not closed", "{{'a}}": "not closed",
		"{{moon type}}": "no helper moon", "{{#if a}}{{trim (moon type)}}{{/if}}": "no helper moon", "{{#moon type}}{{/moon}}": "no block moon", "{{#trim a}}{{/trim}}": "no block trim",
		"{{a.[b}}": "bracket", "{{a..b}}": "not a path", "{{a.}}": "not a path", `{{"a" b}}`: "helper must begin", "{{#5}}{{/5}}": "begin with a name",
		"{{truncate type length=3}}": "not a path", "{{#each a as |x|}}{{/each}}": "not a path", "{{a.[b]c}}": "not a path", "{{~{a}}": "}}} is missing", "{{{a~}}}": "}}} is missing", "{{{~a}}}": "not a path",
		strings.Repeat("{{#if a}}", 30): "nested more than", "{{a " + strings.Repeat("(", 30) + "}}": "too deep", strings.Repeat("x", 70_000): "more than 65536 bytes",
	} {
		if _, err := handlebars.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"{{truncate type}}": "takes 2 to 3", "{{uppercase type type}}": "takes 1 to 1",
		strings.Repeat("{{#each @root.metadata.genres}}", 20) + "x" + strings.Repeat("{{/each}}", 20):                                        "loops too often",
		`{{join (split (join (split "` + strings.Repeat("a", 600) + `" "") "` + strings.Repeat("b", 600) + `") "") "x"}}`:                    "output is too long",
		`{{replace (join (split "` + strings.Repeat("a", 300) + `" "") "aaaaaaaaaa") "a" "` + strings.Repeat("b", 300) + `"}}`:               "output is too long",
		`{{#each (split "` + strings.Repeat("a", 5000) + `" "")}}{{#each (split "` + strings.Repeat("a", 5000) + `" "")}}{{/each}}{{/each}}`: "loops too often",
		`{{#each (split "` + strings.Repeat("a", 5000) + `" "")}}{{length (uppercase "` + strings.Repeat("a", 5000) + `")}}{{/each}}`:        "loops too often",
		`{{#each (split "` + strings.Repeat("a", 1000) + `" "")}}{{length "` + strings.Repeat("a", 5000) + `"}}{{/each}}`:                    "loops too often",
		`{{#each (split "` + strings.Repeat("a", 1000) + `" "")}}{{#if "` + strings.Repeat("a", 5000) + `"}}{{/if}}{{/each}}`:                "loops too often",
		`{{length (join (split "` + strings.Repeat("a", 600) + `" "") "` + strings.Repeat("b", 600) + `")}}`:                                 "output is too long",
		`{{length (split "` + strings.Repeat("a", 10_001) + `" "")}}`:                                                                        "output is too long",
		`{{length (split "` + strings.Repeat(",", 10_000) + `" ",")}}`:                                                                       "output is too long",
		strings.Repeat("{{#each @root.metadata.genres}}", 8) + strings.Repeat("x", 1000) + strings.Repeat("{{/each}}", 8):                    "output is too long",
	} {
		parsed, err := handlebars.Parse(text)
		if err != nil {
			t.Errorf("%.40s: %v", text, err)
			continue
		}
		if got, err := parsed.Execute(about); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %.40q, %v", text, got, err)
		}
	}
}

// Templates just within the limits.
func TestLargeTemplates(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64<<10)
	for text, want := range map[string]string{
		long: long,
		`{{length (split "` + strings.Repeat("a", 10_000) + `" "")}}`:                     "10000",
		`{{length (split "` + strings.Repeat(",", 9_999) + `" ",")}}`:                     "10000",
		"{{trim " + strings.Repeat("(trim ", 20) + "'x'" + strings.Repeat(")", 20) + "}}": "x",
	} {
		parsed, err := handlebars.Parse(text)
		if err != nil {
			t.Errorf("%.40s: %v", text, err)
			continue
		}
		if got, err := parsed.Execute(about); got != want && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%.40s: %.40q, %v", text, got, err)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"{{a}}", "{{#if a}}b{{else if c}}d{{/if}}", `{{join (split metadata.title " ") '-'}}`, "{{~#each metadata.genres~}}{{@index}}{{../x}}{{/each}}",
		"{{!-- x --}}{{{a.[b c]}}}", "{{padStart 1 1e9 'x'}}{{truncate 'abc' -1}}{{math 1 '/' 0}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := handlebars.Parse(text)
		if err != nil {
			return
		}
		if out, err := parsed.Execute(about); err == nil && len(out) > 64<<10 {
			t.Errorf("%d bytes", len(out))
		}
	})
}
