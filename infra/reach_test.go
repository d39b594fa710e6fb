package infra_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/longbox/longbox"

// graph says which functions of this module mention which others. It overestimates: a mention counts as a call, and a
// call of an interface method as a call of every possible implementation.
type graph struct {
	files  *token.FileSet
	edges  map[string][]string // by full name; "init <package>" holds the initialisers of variables
	calls  map[string][]call   // of methods of external types (SDK clients, signers), and of the stores and queues
	linked map[string][]string // packages of this module in each program
}

// call is a mention of a method in a function.
type call struct {
	callee   string
	receiver string   // the expression before the dot: Media in m.Media.Put
	literals []string // arguments that are string constants
	position token.Pos
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles, Deps []string
	Module                  *struct{ Main bool }
}

// packages returns the packages of all programs, in import order.
var packages = sync.OnceValues(func() (all []listed, err error) {
	args := []string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles,Deps,Module"}
	for _, p := range programs {
		args = append(args, "./"+p.folder)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = "..", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
})

// linked returns those packages of this module that are in the program.
func linked(all []listed, folder string) (out []listed) {
	program := module + "/" + folder
	at := slices.IndexFunc(all, func(l listed) bool { return l.ImportPath == program })
	for _, l := range all {
		if l.Module != nil && l.Module.Main && (l.ImportPath == program || slices.Contains(all[at].Deps, l.ImportPath)) {
			out = append(out, l)
		}
	}
	return out
}

var load = sync.OnceValues(func() (*graph, error) { return build() })

func reach(t testing.TB) *graph {
	t.Helper()
	g, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func build() (*graph, error) {
	g := &graph{token.NewFileSet(), map[string][]string{}, map[string][]call{}, map[string][]string{}}
	exports := map[string]string{}
	checked := map[string]*types.Package{}
	var outside types.ImporterFrom = importer.ForCompiler(g.files, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	}).(types.ImporterFrom)
	var later []func()
	all, err := packages()
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
		if l.Module == nil || !l.Module.Main {
			continue
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
		files, err := parse(g.files, l)
		if err != nil {
			return nil, err
		}
		c := types.Config{FakeImportC: true, Importer: importing(func(path string) (*types.Package, error) {
			if p := checked[path]; p != nil {
				return p, nil
			}
			return outside.ImportFrom(path, l.Dir, 0)
		})}
		if checked[l.ImportPath], err = c.Check(l.ImportPath, g.files, files, info); err != nil {
			return nil, err
		}
		// A copy of another module without references to ours: its readers and writers lead nowhere.
		if l.ImportPath == module+"/shared/format/rardecode" {
			continue
		}
		// After all types are known: implementations of an interface may be declared later.
		later = append(later, func() { g.collect(l.ImportPath, files, info, checked) })
	}
	for _, p := range programs {
		for _, l := range linked(all, p.folder) {
			g.linked[p.folder] = append(g.linked[p.folder], l.ImportPath)
		}
	}
	for _, f := range later {
		f()
	}
	return g, nil
}

type importing func(path string) (*types.Package, error)

func (f importing) Import(path string) (*types.Package, error) { return f(path) }

func parse(set *token.FileSet, l listed) (files []*ast.File, err error) {
	for _, name := range append(l.GoFiles, l.CgoFiles...) {
		f, err := parser.ParseFile(set, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func (g *graph) collect(path string, files []*ast.File, info *types.Info, all map[string]*types.Package) {
	for _, f := range files {
		for _, d := range f.Decls {
			from := "init " + path
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name != "init" {
				from = info.Defs[fn.Name].(*types.Func).FullName()
			}
			g.mentions(from, d, info, all)
		}
	}
}

// mentions records every function and type that a declaration mentions.
func (g *graph) mentions(from string, d ast.Node, info *types.Info, all map[string]*types.Package) {
	noted := map[*ast.Ident]bool{}
	note := func(id *ast.Ident, receiver string, args []ast.Expr) {
		fn, ok := info.Uses[id].(*types.Func)
		if !ok {
			return
		}
		fn, noted[id] = fn.Origin(), true
		g.edges[from] = append(g.edges[from], fn.FullName())
		if recv := fn.Signature().Recv(); recv != nil {
			c := call{callee: fn.FullName(), receiver: receiver, position: id.Pos()}
			for _, a := range args {
				if v := info.Types[a].Value; v != nil {
					c.literals = append(c.literals, strings.Trim(v.ExactString(), `"`))
				}
			}
			g.calls[from] = append(g.calls[from], c)
			if i, ok := recv.Type().Underlying().(*types.Interface); ok {
				g.edges[from] = append(g.edges[from], behind(i, fn.Name(), all)...)
			}
		}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok {
				note(s.Sel, last(s.X), n.Args)
			}
		case *ast.SelectorExpr:
			if !noted[n.Sel] {
				note(n.Sel, last(n.X), nil)
			}
		case *ast.Ident:
			if noted[n] {
				return true
			}
			note(n, "", nil)
			if name, ok := info.Uses[n].(*types.TypeName); ok && name.Pkg() != nil && all[name.Pkg().Path()] != nil {
				g.edges[from] = append(g.edges[from], calledFromOutside(name)...)
			}
		}
		return true
	})
}

// last returns the last name of an expression: Media for m.base.Media.
func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return last(e.Fun)
	}
	return ""
}

// behind returns the methods of this module that a call of an interface method may reach.
func behind(i *types.Interface, method string, all map[string]*types.Package) (out []string) {
	for _, p := range all {
		for _, name := range p.Scope().Names() {
			t, ok := p.Scope().Lookup(name).(*types.TypeName)
			if !ok || types.IsInterface(t.Type()) || !types.Implements(types.NewPointer(t.Type()), i) {
				continue
			}
			if m, _, _ := types.LookupFieldOrMethod(types.NewPointer(t.Type()), true, p, method); m != nil {
				out = append(out, m.(*types.Func).FullName())
			}
		}
	}
	return out
}

// calledFromOutside returns the methods that libraries call on a type.
func calledFromOutside(t *types.TypeName) (out []string) {
	named, ok := t.Type().(*types.Named)
	if !ok {
		return nil
	}
	for m := range named.Methods() {
		switch m.Name() {
		case "ServeHTTP", "Read", "ReadAt", "Write", "Close", "RoundTrip", "Enter":
			out = append(out, m.FullName())
		}
	}
	return out
}

// from returns everything that can run when the named functions run.
func (g *graph) from(starts ...string) map[string]bool {
	seen := map[string]bool{}
	for len(starts) > 0 {
		f := starts[len(starts)-1]
		starts = starts[:len(starts)-1]
		if !seen[f] {
			seen[f] = true
			starts = append(starts, g.edges[f]...)
		}
	}
	return seen
}

// program returns everything that can run in a program.
func (g *graph) program(folder string) map[string]bool {
	starts := []string{module + "/" + folder + ".main"}
	for _, p := range g.linked[folder] {
		starts = append(starts, "init "+p)
	}
	return g.from(starts...)
}
