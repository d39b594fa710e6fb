package handlebars

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Limits of a template.
const (
	maxTemplate = 64 << 10 // bytes
	maxDepth    = 20       // nested blocks, or nested subexpressions
)

// Template is a parsed template. It is safe for concurrent use.
type Template struct{ body []node }

// node is a part of a template: text, a value, or a block.
type node struct {
	text  string
	value *expression
	block *block
}

// block is {{#...}}...{{else}}...{{/...}}.
type block struct {
	expression
	inverted   bool // {{^...}}
	body, rest []node
}

// expression is a path, a literal, or a helper with its arguments.
type expression struct {
	path    *path
	literal any // if path is nil
	args    []expression
}

// path refers to a value: up by ups levels of context, then down by the names.
type path struct {
	ups   int
	names []string
	data  bool // starts with @
	full  string
}

// SyntaxError says what is wrong with a template, and in which line.
type SyntaxError struct {
	Line int
	What string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

type parser struct {
	text string
	at   int
	trim bool // the last tag ends with ~
}

// Parse parses a template.
func Parse(text string) (t *Template, err error) {
	if len(text) > maxTemplate {
		return nil, &SyntaxError{1, fmt.Sprintf("the template has more than %d bytes", maxTemplate)}
	}
	p := &parser{text: text}
	body, end, err := p.nodes(0)
	if err == nil && end != "" {
		err = p.wrong("{{%s}} does not belong to a block", end)
	}
	if err != nil {
		return nil, err
	}
	return &Template{body}, nil
}

func (p *parser) wrong(format string, args ...any) error {
	return &SyntaxError{1 + strings.Count(p.text[:p.at], "\n"), fmt.Sprintf(format, args...)}
}

// nodes parses up to the tag that ends a block or starts its else, and returns that tag as end; "" means the end of the
// template.
func (p *parser) nodes(depth int) (out []node, end string, err error) {
	if depth > maxDepth {
		return nil, "", p.wrong("blocks are nested more than %d deep", maxDepth)
	}
	for {
		text, more := p.literal()
		if text != "" {
			out = append(out, node{text: text})
		}
		if !more {
			return out, "", nil
		}
		tag, comment, err := p.open()
		switch {
		case err != nil:
			return nil, "", err
		case comment:
		case tag == "else" || strings.HasPrefix(tag, "else ") || tag == "^" || strings.HasPrefix(tag, "/"):
			return out, tag, nil
		case tag != "" && (tag[0] == '#' || tag[0] == '^'):
			b, err := p.block(tag, depth)
			if err != nil {
				return nil, "", err
			}
			out = append(out, node{block: b})
		default:
			e, err := p.expression(strings.TrimPrefix(tag, "&"))
			if err == nil {
				err = p.helped(e)
			}
			if err != nil {
				return nil, "", err
			}
			out = append(out, node{value: e})
		}
	}
}

// literal returns the text up to the next tag, and whether there is one.
func (p *parser) literal() (text string, more bool) {
	rest := p.text[p.at:]
	n := strings.Index(rest, "{{")
	more = n >= 0
	if !more {
		n = len(rest)
	}
	text = rest[:n]
	p.at += n
	if p.trim {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
	}
	if more && strings.HasPrefix(rest[n+2:], "~") {
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	}
	p.trim = false
	return text, more
}

// open reads the tag that starts here.
func (p *parser) open() (tag string, comment bool, err error) {
	rest := p.text[p.at+2:]
	closing := "}}"
	if strings.HasPrefix(strings.TrimPrefix(rest, "~"), "!--") {
		closing = "--}}"
		if before, _, _ := strings.Cut(rest, closing); strings.Contains(before, "--~}}") {
			closing = "--~}}"
		}
	}
	n := closes(rest, closing)
	if n < 0 {
		return "", false, p.wrong("a tag is not closed: %s is missing", closing)
	}
	tag = rest[:n]
	p.trim = strings.HasSuffix(tag, "~") || closing == "--~}}"
	tag = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(tag, "~"), "~"))
	end := n + len(closing)
	if inner, three := strings.CutPrefix(tag, "{"); three { // {{{a}}}, and {{~{a}~}}
		closed := strings.HasPrefix(rest[end:], "}")
		if p.trim {
			inner, closed = strings.CutSuffix(inner, "}")
		} else if closed {
			end++
		}
		if !closed {
			return "", false, p.wrong("a tag is not closed: }}} is missing")
		}
		tag = strings.TrimSpace(inner)
	}
	comment = strings.HasPrefix(tag, "!")
	if !comment && tag == "" {
		return "", false, p.wrong("a tag is empty")
	}
	if !comment && strings.HasPrefix(tag, ">") {
		return "", false, p.wrong("partials are not supported")
	}
	p.at += 2 + end
	return tag, comment, nil
}

// closes returns where a tag is closed, ignoring quoted strings, or a negative number.
func closes(rest, closing string) int {
	if closing != "}}" {
		return strings.Index(rest, closing)
	}
	quote := byte(0)
	for i := range len(rest) {
		switch c := rest[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			if !strings.HasPrefix(strings.TrimLeft(rest, "~"), "!") {
				quote = c
			}
		case strings.HasPrefix(rest[i:], closing):
			return i
		}
	}
	return -1
}

func (p *parser) block(tag string, depth int) (*block, error) {
	return p.part(tag[1:], tag[0] == '^', depth, "")
}

// part parses a block from its first tag, or from an {{else ...}} in the block name, to the end of the whole block.
func (p *parser) part(tag string, inverted bool, depth int, name string) (*block, error) {
	e, err := p.expression(tag)
	if err != nil {
		return nil, err
	}
	if e.path == nil {
		return nil, p.wrong("a block must begin with a name")
	}
	if of := e.path.full; len(e.args) > 0 && of != "each" && of != "with" && conditions[of] == nil {
		return nil, p.wrong("there is no block %s", of)
	}
	if name == "" {
		name = e.path.full
	}
	b := &block{expression: *e, inverted: inverted}
	body, end, err := p.nodes(depth + 1)
	if err != nil {
		return nil, err
	}
	b.body = body
	if other, ok := strings.CutPrefix(end, "else "); ok {
		inner, err := p.part(other, false, depth+1, name)
		b.rest = []node{{block: inner}}
		return b, err
	}
	if end == "else" || end == "^" {
		if b.rest, end, err = p.nodes(depth + 1); err != nil {
			return nil, err
		}
	}
	return b, p.closed(end, name)
}

func (p *parser) closed(end, name string) error {
	if got, ok := strings.CutPrefix(end, "/"); !ok || strings.TrimSpace(got) != name {
		return p.wrong("the block %s is not closed by {{/%s}}", name, name)
	}
	return nil
}

// expression parses the content of a tag.
func (p *parser) expression(tag string) (*expression, error) {
	tokens, err := p.tokens(tag)
	if err != nil {
		return nil, err
	}
	e, rest, err := p.call(tokens, 0)
	if err == nil && len(rest) > 0 {
		err = p.wrong("%q is not understood", rest[0])
	}
	return e, err
}

// tokens splits a tag into words: parentheses, quoted strings, and everything else up to a space.
func (p *parser) tokens(tag string) (out []string, err error) {
	for tag = strings.TrimSpace(tag); tag != ""; tag = strings.TrimLeftFunc(tag, unicode.IsSpace) {
		n := 1
		switch c := tag[0]; c {
		case '(', ')':
		case '"', '\'':
			end := strings.IndexByte(tag[1:], c)
			if end < 0 {
				return nil, p.wrong("a string is not closed")
			}
			n = end + 2
		default:
			n = wordEnd(tag)
		}
		out = append(out, tag[:n])
		tag = tag[n:]
	}
	return out, nil
}

// wordEnd returns the end of a word. Brackets may contain anything.
func wordEnd(tag string) int {
	bracket := false
	for i, r := range tag {
		switch {
		case bracket:
			bracket = r != ']'
		case r == '[':
			bracket = true
		case unicode.IsSpace(r) || strings.ContainsRune(`()"'`, r):
			return max(i, 1)
		}
	}
	return len(tag)
}

// call parses a value with its arguments.
func (p *parser) call(tokens []string, depth int) (*expression, []string, error) {
	e, rest, err := p.operand(tokens, depth)
	if err != nil {
		return nil, nil, err
	}
	for len(rest) > 0 && rest[0] != ")" {
		var arg *expression
		if arg, rest, err = p.operand(rest, depth); err != nil {
			return nil, nil, err
		}
		e.args = append(e.args, *arg)
	}
	if len(e.args) > 0 && e.path == nil {
		return nil, nil, p.wrong("a helper must begin with its name")
	}
	return e, rest, nil
}

// helped tells whether there is a helper for an expression with arguments.
func (p *parser) helped(e *expression) error {
	if len(e.args) == 0 || helpers[e.path.full].do != nil || conditions[e.path.full] != nil {
		return nil
	}
	return p.wrong("there is no helper %s", e.path.full)
}

// operand reads one value.
func (p *parser) operand(tokens []string, depth int) (*expression, []string, error) {
	if len(tokens) == 0 || depth > maxDepth {
		return nil, nil, p.wrong("a value is missing, or is nested too deep")
	}
	token, rest := tokens[0], tokens[1:]
	switch {
	case token == "(":
		e, rest, err := p.call(rest, depth+1)
		if err != nil {
			return nil, nil, err
		}
		if len(rest) == 0 {
			return nil, nil, p.wrong("a parenthesis is not closed")
		}
		return e, rest[1:], p.helped(e)
	case token == ")":
		return nil, nil, p.wrong("a closing parenthesis has no opening one")
	case token[0] == '"' || token[0] == '\'':
		return &expression{literal: token[1 : len(token)-1]}, rest, nil
	case token == "true" || token == "false":
		return &expression{literal: token == "true"}, rest, nil
	case token == "null" || token == "undefined":
		return &expression{}, rest, nil
	}
	if n, err := strconv.ParseFloat(token, 64); err == nil && strings.Trim(token, "0123456789.-") == "" {
		return &expression{literal: n}, rest, nil
	}
	at, err := p.path(token)
	return &expression{path: at}, rest, err
}

// path parses a path such as ../a.[b c].d or @index.
func (p *parser) path(token string) (*path, error) {
	out := &path{full: token}
	rest := token
	if out.data = strings.HasPrefix(rest, "@"); out.data {
		rest = rest[1:]
	}
	for strings.HasPrefix(rest, "../") {
		out.ups, rest = out.ups+1, rest[3:]
	}
	if rest == ".." {
		return &path{ups: out.ups + 1, full: token}, nil
	}
	rest = strings.TrimPrefix(rest, "./")
	for rest != "" && rest != "." && rest != "this" {
		name := rest
		if inside, ok := strings.CutPrefix(rest, "["); ok {
			end := strings.IndexByte(inside, ']')
			if end < 0 {
				return nil, p.wrong("in %s a bracket is not closed", token)
			}
			name, rest = inside[:end], inside[end+1:]
			if rest != "" && rest[0] != '.' && rest[0] != '/' {
				return nil, p.wrong("%s is not a path", token)
			}
			rest = rest[min(1, len(rest)):]
		} else if i := strings.IndexAny(rest, "./"); i >= 0 {
			name, rest = rest[:i], rest[i+1:]
			if rest == "" {
				return nil, p.wrong("%s is not a path", token)
			}
		} else {
			rest = ""
		}
		if name == "" || strings.ContainsAny(name, "|={}~") {
			return nil, p.wrong("%s is not a path", token)
		}
		if name != "this" || len(out.names) > 0 {
			out.names = append(out.names, name)
		}
	}
	return out, nil
}
