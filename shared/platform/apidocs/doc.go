// Package apidocs describes an API: as OpenAPI 3.1 in JSON and YAML, and on a page that works offline, where a
// token can be entered and operations tried. All of it is off unless configured.
package apidocs
