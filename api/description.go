// Package api is the published description of the interface, OpenAPI 3.1. functions/openapi writes the files from
// the operations that the functions register; a test there fails when they are not those of the code.
package api

import _ "embed" // the file is served as it is

// JSON is openapi.json; openapi.yaml is the same in YAML.
//
//go:embed openapi.json
var JSON []byte
