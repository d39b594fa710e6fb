package infra_test

import (
	"maps"
	"os"
	"testing"

	"github.com/longbox/longbox/shared/app/api"
	"github.com/longbox/longbox/shared/app/media"
	"github.com/longbox/longbox/shared/app/operator"
	"github.com/longbox/longbox/shared/app/plugin"
	"github.com/longbox/longbox/shared/app/scheduler"
	"github.com/longbox/longbox/shared/app/worker"
	"github.com/longbox/longbox/sse-relay/relay"
)

// program is a program that the templates run.
type program struct {
	resource string // its function in template.yaml; the relay is in infra/relay.yaml
	folder   string
	config   any // its configuration; nil: the env tags in its own folder
}

// programs are all programs. Two functions may run the same one.
var programs = []program{
	{"Api", "functions/api", api.Config{}},
	{"Media", "functions/media", media.Config{}},
	{"Render", "functions/media", media.Config{}},
	{"Worker", "functions/worker", worker.Config{}},
	{"Scheduler", "functions/scheduler", scheduler.Config{}},
	{"Operator", "functions/operator", operator.Config{}},
	{"Migrate", "functions/migrate", nil},
	{"Plugin", "functions/plugin", plugin.Config{}},
	{"", "sse-relay", relay.Config{}},
}

// alone is the type of functions to which Globals do not apply.
const alone = "AWS::Lambda::Function"

// notDeployed are folders of functions that do not run in the cloud.
var notDeployed = map[string]string{"openapi": "writes the interface description"}

func TestEveryFunctionIsDeployed(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, p := range programs {
		known[p.folder] = true
	}
	folders, err := os.ReadDir("../functions")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if f.IsDir() && notDeployed[f.Name()] == "" && !known["functions/"+f.Name()] {
			t.Errorf("functions/%s is in no template: add a function to template.yaml, a role to infra/role.yaml, and both to programs in infra/program_test.go", f.Name())
		}
	}
	functions := read(t, "template.yaml").resources("AWS::Serverless::Function")
	maps.Copy(functions, read(t, "template.yaml").resources(alone))
	for name := range functions {
		found := false
		for _, p := range programs {
			found = found || p.resource == name
		}
		if !found {
			t.Errorf("template.yaml has a function %s that is not among programs in infra/program_test.go", name)
		}
	}
}

// environment returns the variables that the templates set, by name.
func (p program) environment(t testing.TB) map[string]node {
	t.Helper()
	out := map[string]node{}
	if p.resource == "" {
		for _, task := range read(t, "infra/relay.yaml").resources("AWS::ECS::TaskDefinition") {
			container := task.get("ContainerDefinitions").list()[0]
			for _, e := range append(container.get("Environment").list(), container.get("Secrets").list()...) {
				out[e.get("Name").text()] = e
			}
		}
		return out
	}
	template := read(t, "template.yaml")
	sources := []node{template.get("Globals", "Function"), template.get("Resources", p.resource, "Properties")}
	if template.get("Resources", p.resource, "Type").text() == alone {
		sources = sources[1:]
	}
	for _, from := range sources {
		keys, values := from.get("Environment", "Variables").pairs()
		for i, k := range keys {
			out[k] = values[i]
		}
	}
	return out
}

func (p program) String() string {
	if p.resource == "" {
		return "relay (infra/relay.yaml)"
	}
	return p.resource + " (template.yaml)"
}
