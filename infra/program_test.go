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

// program is one that the templates run.
type program struct {
	resource string // its function in template.yaml; the relay is in infra/relay.yaml
	folder   string
	config   any // what it reads of the environment; nil: what its own folder says in env tags
}

// programs are all of them. Two functions may run one program.
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

// alone is the kind of functions that Globals say nothing about.
const alone = "AWS::Lambda::Function"

// notDeployed are folders of functions that run elsewhere.
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

// environment is what the templates give the program, by name.
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
