// Package apidocs describes an API as OpenAPI 3.1, in JSON and YAML. It also serves an offline page on which users
// enter a token and try operations. Both are off by default.
package apidocs
