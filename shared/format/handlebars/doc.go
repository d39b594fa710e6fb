// Package handlebars makes texts of templates with double braces, in the language of https://handlebarsjs.com/guide:
// paths, helpers with subexpressions, the blocks if, unless, each and with, else, comments and control of white space.
// It has no partials, no decorators and no blocks of parameters (as |x|).
//
// Nothing is escaped: what is made is a text, no HTML. What is missing is empty. A template that loops too often, or
// makes too much, ends with an error, so that nobody's template keeps a server busy.
//
// The libraries for it look methods up by their names, for which the linker keeps every method of a program: the api
// would be half as large again.
package handlebars
