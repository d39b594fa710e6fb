package environ_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/environ"
)

type inner struct {
	Wait time.Duration `env:"ENVIRON_WAIT" envDefault:"1s"`
}

type settings struct {
	Inner  inner
	Slots  int    `env:"ENVIRON_SLOTS" envDefault:"3"`
	Needed string `env:"ENVIRON_NEEDED,required"`
}

func TestEveryVariableAtFaultIsNamed(t *testing.T) {
	t.Setenv("ENVIRON_NEEDED", "x")
	t.Setenv("ENVIRON_SLOTS", "many")
	t.Setenv("ENVIRON_WAIT", "5")
	_, err := environ.Parse[settings]()
	if err == nil {
		t.Fatal("wrong values are taken")
	}
	for _, want := range []string{"ENVIRON_SLOTS", `"many"`, "ENVIRON_WAIT", "missing unit"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s in it", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "field") || strings.Contains(err.Error(), "strconv") {
		t.Errorf("not one line in words of the environment: %v", err)
	}
}

func TestWhatAValueMustBeIsSaid(t *testing.T) {
	type all struct {
		On     bool    `env:"ENVIRON_ON"`
		Port   int     `env:"ENVIRON_PORT"`
		Memory int64   `env:"ENVIRON_MEMORY"`
		Count  uint16  `env:"ENVIRON_COUNT"`
		Ratio  float64 `env:"ENVIRON_RATIO"`

		Level slog.Level `env:"ENVIRON_LEVEL"`
	}
	for _, c := range []struct{ name, value, want string }{
		{"ENVIRON_ON", "yes", "true or false"}, {"ENVIRON_ON", "", ""}, {"ENVIRON_PORT", "abc", "a whole number without a unit"},
		{"ENVIRON_MEMORY", "1G", "a whole number without a unit"}, {"ENVIRON_MEMORY", "9223372036854775808", "a number nearer to zero"},
		{"ENVIRON_COUNT", "-1", "a whole number without a unit"}, {"ENVIRON_RATIO", "half", "a number"},
		{"ENVIRON_LEVEL", "loud", "debug, info, warn or error"}, {"ENVIRON_LEVEL", "Warn", ""},
	} {
		t.Run(c.name+c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			_, err := environ.Parse[all]()
			if want := c.name + ": must be " + c.want + `, is "` + c.value + `"`; c.want != "" && (err == nil || err.Error() != want) {
				t.Errorf("%v, want %s", err, want)
			}
			if c.want == "" && err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAMissingVariableIsNamed(t *testing.T) {
	if _, err := environ.Parse[settings](); err == nil || !strings.Contains(err.Error(), "ENVIRON_NEEDED") {
		t.Errorf("%v, want ENVIRON_NEEDED in it", err)
	}
}

func TestWhatIsSetIsRead(t *testing.T) {
	t.Setenv("ENVIRON_NEEDED", "x")
	t.Setenv("ENVIRON_WAIT", "5s")
	c, err := environ.Parse[settings]()
	if want := (settings{inner{5 * time.Second}, 3, "x"}); err != nil || c != want {
		t.Errorf("%+v, %v, want %+v", c, err, want)
	}
}

func TestWebAddress(t *testing.T) {
	for value, good := range map[string]bool{"https://books.example.org": true, "http://127.0.0.1:8080/": true, "foo": false, "": false, "https://": false,
		"http://:80": false, "ftp://a": false, "books.example.org": false, "http://a\x7f": false} {
		for name, check := range map[string]func(name, value string) error{"PLUGIN_URL": environ.WebAddress, "PUBLIC_URL": environ.PublicAddress} {
			if err := check(name, value); (err == nil) != good || err != nil && !strings.HasPrefix(err.Error(), name+": ") {
				t.Errorf("%s=%q: %v", name, value, err)
			}
		}
	}
}

// Links are the address and a path: it has no other parts, and may be one for each tenant.
func TestPublicAddress(t *testing.T) {
	for value, good := range map[string]bool{"https://{tenant}.example.org": true, "https://{tenant}.example.org/": true, "https://{other}.example.org": false,
		"https://a.example/longbox": false, "https://a.example/?x=1": false, "https://a.example?": false, "https://a.example#": false, "https://me@a.example": false} {
		if err := environ.PublicAddress("PUBLIC_URL", value); (err == nil) != good {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// A browser writes its origin in one form only: another form in the setting would admit nobody.
func TestWebOrigins(t *testing.T) {
	for value, good := range map[string]bool{"https://read.example": true, "http://localhost:5173": true, "http://[::1]:80": false, "http://[::1]:8080": true, "*": true,
		"capacitor://localhost": true, "https://read.example/": false, "https://read.example/app": false, "https://Read.example": false, "https://read.example:443": false,
		" https://read.example": false, "read.example": false, "localhost:5173": false, "https://": false, "": false, "https://a@read.example": false,
		"https://read.example?": false, "https://read.example#": false, "https://*.example": false} {
		if err := environ.WebOrigins("CORS_ORIGINS", []string{"https://other.example", value}); (err == nil) != good ||
			err != nil && !strings.HasPrefix(err.Error(), "CORS_ORIGINS: ") {
			t.Errorf("%q: %v", value, err)
		}
	}
	if err := environ.WebOrigins("CORS_ORIGINS", nil); err != nil {
		t.Errorf("none: %v", err)
	}
}
