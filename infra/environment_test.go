package infra_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// variable is a setting that a program reads.
type variable struct {
	name, otherwise string
	required        bool
}

// thisMachine matches defaults that are useless in the cloud.
var thisMachine = regexp.MustCompile(`127\.0\.0\.1|localhost`)

// leftOut says why the templates leave out settings whose default is empty or false. If only some functions leave one
// out, these have their names before it.
var leftOut = map[string]string{
	"API_DOCS":                   "off, as the contract says",
	"AUTH_PREVIOUS_KEYS":         "the operator sets it while a key is replaced",
	"AWS_REGION":                 "Lambda sets it",
	"LIBRARY_S3_ENDPOINT":        "AWS",
	"LIBRARY_S3_PUBLIC_ENDPOINT": "AWS",
	"MEDIA_S3_ENDPOINT":          "AWS",
	"SQS_ENDPOINT":               "AWS",
	"PLUGIN_LAMBDA_ENDPOINT":     "AWS",
	"S3_PATH_STYLE":              "AWS",
	"PDF_CACHE_DIR":              "an instance keeps no drawn pages",
	"PLUGIN_FOLDERS":             "an instance keeps no files of plugins",
	"PLUGIN_TOKEN":               "PLUGIN_FUNCTION is invoked with IAM",
	"PLUGIN_URL":                 "PLUGIN_FUNCTION is set instead",
	"Api OBJECT_QUEUE_URL":       "worker takes its messages",
	"Media OBJECT_QUEUE_URL":     "worker takes its messages",
	"Render OBJECT_QUEUE_URL":    "worker takes its messages",
	"Scheduler OBJECT_QUEUE_URL": "worker takes its messages",
	"Api TASK_DLQ_URL":           "worker takes its messages",
	"Media TASK_DLQ_URL":         "worker takes its messages",
	"Render TASK_DLQ_URL":        "worker takes its messages",
	"Scheduler TASK_DLQ_URL":     "worker takes its messages",
}

// Every setting that a program needs is set, and every setting that is set is read.
func TestEnvironmentIsWhatTheCodeReads(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, p := range programs {
		given := p.environment(t)
		known := map[string]bool{}
		for _, v := range p.variables(t) {
			known[v.name] = true
			if _, ok := given[v.name]; ok {
				continue
			}
			one := p.resource + " " + v.name
			used[v.name], used[one] = true, true
			switch {
			case v.required:
				t.Errorf("%s must be given to %s: the code ends without it", v.name, p)
			case thisMachine.MatchString(v.otherwise):
				t.Errorf("%s must be given to %s: its default %q means this machine", v.name, p, v.otherwise)
			case strings.HasSuffix(v.name, "_BUCKET"), v.name == "DELIVERY":
				t.Errorf("%s must be given to %s: its default is for one machine", v.name, p)
			case (v.otherwise == "" || v.otherwise == "false") && leftOut[v.name] == "" && leftOut[one] == "":
				t.Errorf("%s must be given to %s; or add it to leftOut in infra/environment_test.go, with the reason", v.name, p)
			}
		}
		if len(known) < 4 {
			t.Fatalf("only %d settings found in %s: the search is broken", len(known), p.folder)
		}
		direct := readDirectly(t, p.folder)
		for name := range given {
			if !known[name] && !direct[name] {
				t.Errorf("%s is given to %s, but %s does not read it: remove it there, or read it", name, p, p.folder)
			}
		}
	}
	for name := range leftOut {
		if !used[name] {
			t.Errorf("leftOut names %s, which no program leaves out: remove it there", name)
		}
	}
}

// variables returns those of the program's Config, or of the env tags in its own folder.
func (p program) variables(t testing.TB) []variable {
	t.Helper()
	var out []variable
	if p.config != nil {
		fields(reflect.TypeOf(p.config), "", &out)
		return out
	}
	files, err := filepath.Glob(filepath.Join("..", p.folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && field.Tag != nil {
				if tag, err := strconv.Unquote(field.Tag.Value); err == nil {
					add(reflect.StructTag(tag), "", &out)
				}
			}
			return true
		})
	}
	return out
}

func fields(s reflect.Type, prefix string, out *[]variable) {
	for i := range s.NumField() {
		f := s.Field(i)
		if !add(f.Tag, prefix, out) && f.Type.Kind() == reflect.Struct {
			fields(f.Type, prefix+f.Tag.Get("envPrefix"), out)
		}
	}
}

func add(tag reflect.StructTag, prefix string, out *[]variable) bool {
	value, ok := tag.Lookup("env")
	if !ok {
		return false
	}
	parts := strings.Split(value, ",")
	*out = append(*out, variable{prefix + parts[0], tag.Get("envDefault"), slices.Contains(parts[1:], "required")})
	return true
}

var direct = regexp.MustCompile(`(?:os\.Getenv|os\.LookupEnv|envOr)\("([A-Z][A-Z0-9_]*)"`)

// readDirectly returns the variables that the program's packages read without a tag.
func readDirectly(t testing.TB, folder string) map[string]bool {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, l := range linked(all, folder) {
		for _, file := range l.GoFiles {
			text, err := os.ReadFile(filepath.Join(l.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range direct.FindAllStringSubmatch(string(text), -1) {
				out[m[1]] = true
			}
		}
	}
	return out
}
