package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/platform/fault"
)

// Command is an operation: an input struct and an output record.
type Command struct {
	Name, Help string
	new        func() any // returns a pointer to an empty input
	run        func(ctx context.Context, o *Operator, in any) (any, error)
}

func command[I any](name, help string, run func(*Operator, context.Context, I) (any, error)) Command {
	return Command{name, help, func() any { return new(I) }, func(ctx context.Context, o *Operator, in any) (any, error) {
		return run(o, ctx, *in.(*I))
	}}
}

// commands lists every command.
var commands = []Command{
	command("create", "create a tenant", (*Operator).create),
	command("list", "list all tenants", (*Operator).list),
	command("show", "show a tenant and what it uses", (*Operator).show),
	command("suspend", "refuse every request and task of a tenant", (*Operator).suspend),
	command("resume", "end the suspension of a tenant, and scan its libraries", (*Operator).resume),
	command("delete", "delete a tenant and all of its data; library files stay", (*Operator).delete),
	command("export", "write a tenant's rows to a ZIP file", (*Operator).export),
	command("add-hosts", "add host names to a tenant", (*Operator).addHosts),
	command("remove-hosts", "remove host names from a tenant", (*Operator).removeHosts),
	command("grant-roots", "let a tenant create libraries in folders", (*Operator).grantRoots),
	command("revoke-roots", "revoke folders of a tenant", (*Operator).revokeRoots),
	command("set-quotas", "limit what a tenant may use", (*Operator).setQuotas),
	command("set-password", "give a user a new password, shown once, and enable the user", (*Operator).setPassword),
	command("oidc set", "add or change an identity provider (OpenID Connect) of a tenant", (*Operator).setOIDC),
	command("oidc list", "list the identity providers of a tenant", (*Operator).listOIDC),
	command("oidc remove", "remove an identity provider of a tenant; its users stay", (*Operator).removeOIDC),
	command("rotate-keys", "give a tenant a new secret and delete the images that the old one named", (*Operator).rotateKeys),
}

func find(name string) (Command, error) {
	i := slices.IndexFunc(commands, func(c Command) bool { return c.Name == name })
	if i < 0 {
		var names []string
		for _, c := range commands {
			names = append(names, c.Name)
		}
		return Command{}, fault.Invalid("command", "must be one of %s, is %q", strings.Join(names, ", "), name)
	}
	return commands[i], nil
}

// Event is the payload of an invocation.
type Event struct {
	Command string          `json:"command"`
	Input   json.RawMessage `json:"input"`
}

// Invoke runs the command in a JSON event: {"command": "suspend", "input": {"name": "acme"}}.
func (o *Operator) Invoke(ctx context.Context, payload json.RawMessage) (any, error) {
	var e Event
	if err := decode(payload, &e); err != nil {
		return nil, err
	}
	c, err := find(e.Command)
	if err != nil {
		return nil, err
	}
	in := c.new()
	if len(e.Input) > 0 {
		if err := decode(e.Input, in); err != nil {
			return nil, err
		}
	}
	return o.do(ctx, c, in)
}

// Run runs the command in a command line: suspend acme.
func (o *Operator) Run(ctx context.Context, args []string) (any, error) {
	c, in, err := parse(args)
	if err != nil {
		return nil, err
	}
	return o.do(ctx, c, in)
}

func (o *Operator) do(ctx context.Context, c Command, in any) (any, error) {
	out, err := c.run(ctx, o, in)
	slog.Info("operator", "command", c.Name, "tenant", nameOf(in), "failed", err != nil)
	return out, err
}

// nameOf returns the tenant that an input names, or "".
func nameOf(in any) string {
	name := reflect.ValueOf(in).Elem().FieldByName("Name")
	if !name.IsValid() {
		return ""
	}
	return name.String()
}

// kinds are the types of inputs in words.
var kinds = map[reflect.Kind]string{reflect.String: "a text", reflect.Bool: "true or false", reflect.Int: "a whole number",
	reflect.Int64: "a whole number", reflect.Slice: "a list of texts", reflect.Struct: "an object"}

// decode decodes a JSON object into a struct; an error names the field.
func decode(data json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		if wrong.Field == "" {
			return fault.New(fault.BadRequest, `the event must be {"command": "…", "input": {…}}, has a %s in the place of an object`, wrong.Value)
		}
		return fault.Invalid(wrong.Field, "must be %s, is a %s", kinds[wrong.Type.Kind()], wrong.Value)
	case err != nil && strings.HasPrefix(err.Error(), "json: unknown field "):
		return fault.Invalid(strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`), "is unknown")
	case err != nil:
		return fault.New(fault.BadRequest, `the event must be {"command": "…", "input": {…}}: %v`, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fault.New(fault.BadRequest, "the event must be one JSON object")
	}
	return nil
}
