// Package handlebars renders templates with double braces, in the language of https://handlebarsjs.com/guide: paths,
// helpers with subexpressions, the blocks if, unless, each and with, else, comments and whitespace control. It has no
// partials, decorators or block parameters (as |x|).
//
// Nothing is escaped: the result is text, not HTML. Missing values are empty. A template that loops too often or
// produces too much ends with an error, so that it cannot keep a server busy.
//
// Existing libraries look up methods by name, so the linker keeps every method of a program: the api would be half as
// large again.
package handlebars
