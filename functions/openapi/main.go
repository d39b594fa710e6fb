// Command openapi writes the OpenAPI description to files. It needs no service.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/longbox/longbox/shared/platform/apidocs"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

func main() {
	jsonFile := flag.String("json", "api/openapi.json", "file for the description in JSON")
	yamlFile := flag.String("yaml", "api/openapi.yaml", "file for the description in YAML")
	flag.Parse()
	if err := run(*jsonFile, *yamlFile); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run(jsonFile, yamlFile string) error {
	a := whole()
	for _, f := range []struct {
		name  string
		write func(*httpapi.API) ([]byte, error)
	}{{jsonFile, apidocs.JSON}, {yamlFile, apidocs.YAML}} {
		data, err := f.write(a)
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.name, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
