package plugin

import (
	"strings"

	"github.com/longbox/longbox/shared/format/handlebars"
)

// checkTemplate returns a template's syntax error, or nil.
func checkTemplate(text string) error {
	_, err := handlebars.Parse(text)
	return err
}

// expand renders a template to a single line.
func expand(text string, context map[string]any) (string, error) {
	t, err := handlebars.Parse(text)
	if err != nil {
		return "", err
	}
	out, err := t.Execute(context)
	return strings.Join(strings.Fields(out), " "), err
}
