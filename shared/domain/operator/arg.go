package operator

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/longbox/longbox/shared/platform/fault"
)

// Asked is a request for help instead of a command.
type Asked string

func (a Asked) Error() string { return string(a) }

// parse parses a command line: the command, the tenant's name, and an option for every other field of the command's
// input (tag `arg`). List options may be repeated.
func parse(args []string) (Command, any, error) {
	if len(args) == 0 {
		return Command{}, nil, fault.New(fault.BadRequest, "%s", help())
	}
	if slices.Contains([]string{"help", "--help", "-help", "-h"}, args[0]) {
		return Command{}, nil, Asked(help())
	}
	if args[0] == "oidc" && len(args) > 1 { // a command of two words
		args = append([]string{"oidc " + args[1]}, args[2:]...)
	}
	c, err := find(args[0])
	if err != nil {
		return Command{}, nil, err
	}
	in := c.new()
	rest := args[1:]
	set := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch field.Tag.Get("arg") {
		case "-": // not available on a command line
			continue
		case "":
			if len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
				v.Field(i).SetString(rest[0])
				rest = rest[1:]
			}
			continue
		}
		option(set, field, v.Field(i))
	}
	if err := set.Parse(rest); errors.Is(err, flag.ErrHelp) {
		return c, nil, Asked(c.usage())
	} else if err != nil {
		return c, nil, fault.New(fault.BadRequest, "%s: %v\n%s", c.Name, err, c.usage())
	}
	if set.NArg() > 0 {
		return c, nil, fault.New(fault.BadRequest, "%s: unexpected argument %q\n%s", c.Name, set.Arg(0), c.usage())
	}
	return c, in, nil
}

func option(set *flag.FlagSet, field reflect.StructField, v reflect.Value) {
	name := field.Tag.Get("arg")
	switch p := v.Addr().Interface().(type) {
	case *bool:
		set.BoolVar(p, name, false, "")
	case *string:
		set.StringVar(p, name, "", "")
	case **string:
		set.Func(name, "", func(s string) error { *p = &s; return nil })
	case *int:
		set.IntVar(p, name, 0, "")
	case *[]string:
		set.Func(name, "", func(s string) error { *p = append(*p, s); return nil })
	case **int64:
		set.Func(name, "", func(s string) error {
			n, err := strconv.ParseInt(s, 10, 64)
			*p = &n
			if err != nil {
				return errors.New("must be a whole number")
			}
			return nil
		})
	default:
		panic(fmt.Sprintf("operator: no option for %s", field.Type))
	}
}

// help lists the commands.
func help() string {
	var out strings.Builder
	out.WriteString("usage: operator <command> [name] [--option value]...\n")
	for _, c := range commands {
		fmt.Fprintf(&out, "  %-14s %s\n", c.Name, c.Help)
	}
	out.WriteString("operator <command> --help lists its options")
	return out.String()
}

func (c Command) usage() string {
	out := "usage: operator " + c.Name
	t := reflect.TypeOf(c.new()).Elem()
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("arg") == "-" {
			continue
		}
		if f.Tag.Get("arg") == "" {
			out += " <" + strings.Split(f.Tag.Get("json"), ",")[0] + ">"
			continue
		}
		out += fmt.Sprintf("\n  --%-16s %s", f.Tag.Get("arg"), f.Tag.Get("help"))
	}
	return out
}
