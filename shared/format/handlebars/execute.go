package handlebars

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Limits of a template.
const (
	maxSteps  = 20_000
	maxOutput = 64 << 10 // bytes; also of a helper's result
	maxParts  = 10_000   // elements of a list that a helper returns
	maxWork   = 4 << 20  // bytes that helpers read and produce
)

var (
	errSteps  = errors.New("the template loops too often")
	errOutput = errors.New("the template's output is too long")
)

// Execute renders a template for a JSON value (nil, bool, float64, string, []any, map[string]any).
func (t *Template) Execute(context any) (string, error) {
	r := &run{frames: []frame{{value: context}}}
	if err := r.nodes(t.body); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

// frame is a level of context, with its @ variables.
type frame struct {
	value any
	data  map[string]any
}

type run struct {
	out    strings.Builder
	frames []frame
	steps  int
	work   int
}

func (r *run) step() error {
	if r.steps++; r.steps > maxSteps {
		return errSteps
	}
	return nil
}

func (r *run) nodes(all []node) error {
	for i := range all {
		if err := r.step(); err != nil {
			return err
		}
		var err error
		switch n := &all[i]; {
		case n.block != nil:
			err = r.block(n.block)
		case n.value != nil:
			var v any
			if v, err = r.eval(n.value); err == nil {
				err = r.write(textOf(v))
			}
		default:
			err = r.write(n.text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) write(text string) error {
	if r.out.Len()+len(text) > maxOutput {
		return errOutput
	}
	r.out.WriteString(text)
	return nil
}

// eval evaluates an expression.
func (r *run) eval(e *expression) (any, error) {
	if err := r.step(); err != nil {
		return nil, err
	}
	if e.path == nil {
		return e.literal, nil
	}
	if len(e.args) == 0 {
		return r.lookup(e.path), nil
	}
	condition, block := conditions[e.path.full]
	args, err := r.args(e)
	if err != nil {
		return nil, err
	}
	for _, a := range args {
		if err := r.spend(a); err != nil {
			return nil, err
		}
	}
	if block { // as a subexpression: reports whether the condition holds
		return condition(args), nil
	}
	made, err := helpers[e.path.full].call(args)
	if err == nil {
		err = r.spend(made)
	}
	return made, err
}

// spend counts the bytes that a helper reads or produces.
func (r *run) spend(v any) error {
	r.work += size(v)
	if r.work > maxWork {
		return errSteps
	}
	return nil
}

// size returns the approximate size of a value in bytes.
func size(v any) int {
	switch v := v.(type) {
	case string:
		return 16 + len(v)
	case []any:
		n := 16
		for _, e := range v {
			n += size(e)
		}
		return n
	}
	return 16
}

func (r *run) args(e *expression) ([]any, error) {
	args := make([]any, len(e.args))
	for i := range e.args {
		v, err := r.eval(&e.args[i])
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	return args, nil
}

// lookup returns the value of a path, or nil.
func (r *run) lookup(p *path) any {
	n := len(r.frames) - 1 - p.ups
	if n < 0 {
		return nil
	}
	at, names := r.frames[n].value, p.names
	if p.data {
		if len(names) == 0 {
			return nil
		}
		if names[0] == "root" {
			at = r.frames[0].value
		} else {
			at = r.frames[n].data[names[0]]
		}
		names = names[1:]
	}
	for _, name := range names {
		at = member(at, name)
	}
	return at
}

// member is that of an object, or the element of a list by its number; nil where there is none.
func member(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[name]
	case []any:
		if name == "length" {
			return float64(len(v))
		}
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}

// block renders the matching part of a block.
func (r *run) block(b *block) error {
	name := b.path.full
	args, err := r.args(&b.expression)
	if err != nil {
		return err
	}
	for _, a := range args {
		if err := r.spend(a); err != nil {
			return err
		}
	}
	if len(args) == 0 { // {{#path}}: a loop over a list, otherwise once if the value is true
		v := r.lookup(b.path)
		if list, ok := v.([]any); ok && !b.inverted {
			return r.each(b, list)
		}
		if isTrue(v) == b.inverted {
			return r.nodes(b.rest)
		}
		if _, object := v.(map[string]any); object && !b.inverted {
			return r.within(frame{value: v}, b.body)
		}
		return r.nodes(b.body)
	}
	switch name {
	case "each":
		return r.each(b, args[0])
	case "with":
		if !isTrue(args[0]) {
			return r.nodes(b.rest)
		}
		return r.within(frame{value: args[0]}, b.body)
	}
	if conditions[name](args) != b.inverted {
		return r.nodes(b.body)
	}
	return r.nodes(b.rest)
}

func (r *run) within(f frame, body []node) error {
	if f.data == nil { // inherited from the enclosing loop
		f.data = r.frames[len(r.frames)-1].data
	}
	r.frames = append(r.frames, f)
	defer func() { r.frames = r.frames[:len(r.frames)-1] }()
	return r.nodes(body)
}

// each renders a block for every element of a list, or for every member of an object, sorted by name.
func (r *run) each(b *block, over any) error {
	var keys []string
	n := 0
	switch v := over.(type) {
	case []any:
		n = len(v)
	case map[string]any:
		keys = slices.Sorted(maps.Keys(v))
		n = len(keys)
	}
	if n == 0 {
		return r.nodes(b.rest)
	}
	for i := range n {
		if err := r.step(); err != nil {
			return err
		}
		data := map[string]any{"index": float64(i), "key": float64(i), "first": i == 0, "last": i == n-1}
		f := frame{data: data}
		if keys != nil {
			data["key"] = keys[i]
			f.value = over.(map[string]any)[keys[i]]
		} else {
			f.value = over.([]any)[i]
		}
		if err := r.within(f, b.body); err != nil {
			return err
		}
	}
	return nil
}

// isTrue tells whether a value counts as something: not null, false, 0, "" or a list without elements.
func isTrue(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	}
	return true
}

// textOf is a value as it is shown: null as nothing, a list with commas between.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = textOf(e)
		}
		return strings.Join(parts, ",")
	}
	return ""
}
