package infra_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
)

// node is a part of a template. Tags such as !Sub are kept: they are nodes with a tag.
type node struct{ *yaml.Node }

// read parses a template; the path is relative to the repository's root.
func read(t testing.TB, path string) node {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", path))
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return node{doc.Content[0]}
}

// pairs returns the entries of a map in order.
func (n node) pairs() (keys []string, values []node) {
	if n.Node == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i < len(n.Content); i += 2 {
		keys, values = append(keys, n.Content[i].Value), append(values, node{n.Content[i+1]})
	}
	return keys, values
}

// get follows keys. It returns an empty node if one is missing.
func (n node) get(path ...string) node {
	for _, key := range path {
		keys, values := n.pairs()
		n = node{}
		for i, k := range keys {
			if k == key {
				n = values[i]
			}
		}
		if n.Node == nil {
			return n
		}
	}
	return n
}

// text returns the value of a scalar, with any tag.
func (n node) text() string {
	if n.Node == nil {
		return ""
	}
	return n.Value
}

// list returns the elements of a sequence. A scalar is a list of itself.
func (n node) list() []node {
	switch {
	case n.Node == nil:
		return nil
	case n.Kind != yaml.SequenceNode || n.Tag == "!If":
		return []node{n}
	}
	var out []node
	for _, c := range n.Content {
		out = append(out, node{c})
	}
	return out
}

// scalars returns all values below a node.
func (n node) scalars() []string {
	if n.Node == nil {
		return nil
	}
	if n.Kind == yaml.ScalarNode {
		return []string{n.Value}
	}
	var out []string
	for _, c := range n.Content {
		out = append(out, node{c}.scalars()...)
	}
	return out
}

// chosen returns the branch of an !If for a condition. Any other node is returned unchanged.
func (n node) chosen(holds bool) node {
	if n.Node != nil && n.Tag == "!If" {
		if !holds {
			return node{n.Content[2]}
		}
		return node{n.Content[1]}
	}
	return n
}

// resources returns the resources of a type by name.
func (n node) resources(kind string) map[string]node {
	out := map[string]node{}
	keys, values := n.get("Resources").pairs()
	for i, k := range keys {
		if values[i].get("Type").text() == kind {
			out[k] = values[i].get("Properties")
		}
	}
	return out
}
