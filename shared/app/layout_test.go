package app_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/longbox/longbox/"

// rules say which parts of the repository must not import which others; tests may.
var rules = []struct {
	from string
	not  []string
}{
	{"shared/format", []string{"shared/platform", "shared/domain", "shared/app", "functions", "sse-relay", "localstack"}},
	{"shared/platform", []string{"shared/domain", "shared/app", "functions", "sse-relay", "localstack"}},
	{"shared/domain", []string{"shared/app", "functions", "sse-relay", "localstack"}},
	{"shared/app", []string{"functions", "sse-relay", "localstack"}},
	{"sse-relay", []string{"shared/domain", "shared/app", "shared/platform/db", "functions", "localstack"}},
	{"functions/api", []string{"shared/format/imaging", "shared/domain/rendition"}},
	{"shared/app/api", []string{"shared/domain/scan/scanner", "shared/domain/analysis", "shared/domain/rendition", "shared/format"}},
}

// onlyImporters of libraries that must stay in one place.
var onlyImporters = map[string]string{
	"github.com/davidbyttow/govips/v2/vips":      "shared/format/imaging",
	"github.com/aws/aws-sdk-go-v2/service/s3":    "shared/platform/blob",
	"github.com/aws/aws-lambda-go/lambda":        "shared/platform/lambdahttp",
	"github.com/danielgtaylor/huma/v2/sse":       "",
	"github.com/awslabs/aws-lambda-go-api-proxy": "shared/platform/lambdahttp",
}

func TestLayout(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && rel != "." {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") || strings.HasPrefix(rel, "shared/testkit") || strings.HasPrefix(rel, "bench/") {
			return nil
		}
		files++
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), rel, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			check(t, rel, name)
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files: %v", files, err)
	}
}

func check(t *testing.T, file, imported string) {
	t.Helper()
	for lib, only := range onlyImporters {
		// localstack prepares the gateway's bucket, from outside the product.
		if (imported == lib || strings.HasPrefix(imported, lib+"/")) && (only == "" || !strings.HasPrefix(file, only)) && !strings.HasPrefix(file, "localstack/") {
			t.Errorf("%s imports %s, which only %q may", file, imported, only)
		}
	}
	own, ok := strings.CutPrefix(imported, module)
	if !ok {
		return
	}
	for _, r := range rules {
		if !strings.HasPrefix(file, r.from+"/") {
			continue
		}
		for _, not := range r.not {
			if own == not || strings.HasPrefix(own, not+"/") {
				t.Errorf("%s imports %s", file, own)
			}
		}
	}
}
