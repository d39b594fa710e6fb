package infra_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
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

// oneMachine reports whether a missing setting would mean the behaviour of one machine.
func oneMachine(t *testing.T, p program, name string) bool {
	return strings.HasSuffix(name, "_BUCKET") || (name == "TASK_QUEUE_URL" && needs(t, p)["sqs:SendMessage"])
}

// thisMachine matches defaults that are useless in the cloud.
var thisMachine = regexp.MustCompile(`127\.0\.0\.1|localhost`)

// Every setting that a program needs is set, and every setting that is set is read.
func TestEnvironmentIsWhatTheCodeReads(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			given := p.environment(t)
			known := map[string]bool{}
			for _, v := range p.variables(t) {
				known[v.name] = true
				_, ok := given[v.name]
				switch {
				case ok:
				case v.required:
					t.Errorf("%s must be given to %s: the code ends without it", v.name, p)
				case thisMachine.MatchString(v.otherwise):
					t.Errorf("%s must be given to %s: its default %q means this machine", v.name, p, v.otherwise)
				case oneMachine(t, p, v.name):
					t.Errorf("%s must be given to %s: its default is for one machine", v.name, p)
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
		})
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
	cmd := exec.Command("go", "list", "-deps", "-f", `{{if and .Module .Module.Main}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}`, "./"+folder)
	cmd.Dir, cmd.Stderr = "..", os.Stderr
	files, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for file := range strings.FieldsSeq(string(files)) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range direct.FindAllStringSubmatch(string(text), -1) {
			out[m[1]] = true
		}
	}
	return out
}
