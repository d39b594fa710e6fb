// Package environ reads settings from environment variables. Its errors name the variable.
package environ

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/caarlos0/env/v11"
)

// Parse reads T from the environment by its env tags. The error is one line that names every invalid variable.
func Parse[T any]() (T, error) {
	c, err := env.ParseAs[T]()
	if err == nil {
		return c, nil
	}
	if wrong := unreadable[T](); len(wrong) > 0 {
		err = errors.New(strings.Join(wrong, "; "))
	}
	return *new(T), errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
}

// unreadable returns one message per variable that does not parse. The parser's own error names only the Go field,
// which users do not know. So each variable is parsed alone to find the invalid ones.
func unreadable[T any]() []string {
	var zero T
	fields, err := env.GetFieldParams(&zero)
	if err != nil {
		return nil // Parse then returns its own error
	}
	var wrong []string
	for _, f := range fields {
		value, set := os.LookupEnv(f.Key)
		if !set {
			continue
		}
		_, err := env.ParseAsWithOptions[T](env.Options{Environment: map[string]string{f.Key: value}})
		var parse env.ParseError
		if !errors.As(err, &parse) {
			continue
		}
		var number *strconv.NumError
		if errors.As(parse.Err, &number) { // its text begins with a function name
			parse.Err = fmt.Errorf("must be %s, is %q", expected(number), number.Num)
		} else if parse.Type == reflect.TypeFor[slog.Level]() {
			parse.Err = fmt.Errorf("must be debug, info, warn or error, is %q", value)
		}
		wrong = append(wrong, fmt.Sprintf("%s: %v", f.Key, parse.Err))
	}
	return wrong
}

// expected returns what kind of value was expected where strconv failed.
func expected(e *strconv.NumError) string {
	switch {
	case e.Func == "ParseBool":
		return "true or false"
	case errors.Is(e.Err, strconv.ErrRange):
		return "a number nearer to zero"
	case e.Func == "ParseFloat":
		return "a number"
	}
	return "a whole number without a unit"
}

const minSecret = 32 // characters

// Secrets returns an error if the variable is not one secret, or two during a rotation.
func Secrets(name string, values []string) error {
	if len(values) > 2 {
		return fmt.Errorf("%s: must be one secret, or two separated by a comma; there are %d", name, len(values))
	}
	for _, s := range values {
		if len(s) < minSecret {
			return fmt.Errorf("%s: needs at least %d characters, has %d", name, minSecret, len(s))
		}
	}
	return nil
}

// WebAddress returns an error if the variable is not the URL of a web site.
func WebAddress(name, value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("%s: must be an address like https://books.example.org, is %q", name, value)
	}
	return nil
}

// PublicAddress returns an error if the variable is not the address of Longbox: a site of its own, without a path.
// {tenant} in the host stands for the name of a tenant.
func PublicAddress(name, value string) error {
	site := strings.ReplaceAll(strings.TrimSuffix(value, "/"), "{tenant}", "tenant")
	u, err := url.Parse(site)
	if err != nil || u.User != nil || u.Path != "" || strings.ContainsAny(site, "?#") || WebAddress(name, site) != nil {
		return fmt.Errorf("%s: must be an address like https://books.example.org or https://{tenant}.example.org, without a path, is %q", name, value)
	}
	return nil
}

// WebOrigins returns an error if the variable is not a list of origins as browsers write them, or * for any.
func WebOrigins(name string, values []string) error {
	for _, value := range values {
		if value != "*" && !isOrigin(value) {
			return fmt.Errorf("%s: must be origins like https://read.example.org (in lower case, without a slash at the end, a path, spaces or the usual port) or *, is %q", name, value)
		}
	}
	return nil
}

func isOrigin(value string) bool {
	u, err := url.Parse(value)
	if err != nil || u.Hostname() == "" || value != u.Scheme+"://"+strings.ToLower(u.Host) {
		return false
	}
	// Browsers leave these ports out.
	usual := u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443"
	return !usual && !strings.Contains(value, "*")
}
