package plugin

import (
	"strings"

	"github.com/longbox/longbox/shared/format/handlebars"
)

// checkTemplate tells what is wrong with a template.
func checkTemplate(text string) error {
	_, err := handlebars.Parse(text)
	return err
}

// expand is what a template makes of a context, in one line.
func expand(text string, context map[string]any) (string, error) {
	t, err := handlebars.Parse(text)
	if err != nil {
		return "", err
	}
	out, err := t.Execute(context)
	return strings.Join(strings.Fields(out), " "), err
}
