// Package api is the published OpenAPI 3.1 description. functions/openapi generates the files from the registered
// operations. A test there fails when they are out of date.
package api

import _ "embed" // the file is served unchanged

// JSON is openapi.json; openapi.yaml is the same in YAML.
//
//go:embed openapi.json
var JSON []byte
