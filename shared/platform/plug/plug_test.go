package plug_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/platform/plug"
)

// answering is a server with a fixed response that records the request.
func answering(t *testing.T, status int, header http.Header, body string) (url string, asked *http.Request, call *plug.Call) {
	t.Helper()
	asked, call = &http.Request{}, &plug.Call{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = *r.Clone(t.Context())
		if err := json.NewDecoder(r.Body).Decode(call); err != nil {
			t.Error(err)
		}
		for k := range header {
			w.Header().Set(k, header.Get(k))
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked, call
}

func TestAskOverHTTP(t *testing.T) {
	t.Parallel()
	url, asked, call := answering(t, 200, nil, `{"result":"pong","manifest":{"name":"a"}}`)
	c := plug.New(plug.Config{URL: url, Token: "x"})
	a, err := c.Ask(t.Context(), plug.Call{Start: &plug.Start{Tenant: "t", Name: "a", Command: "node"}, Method: "ping"})
	if err != nil || string(a.Result) != `"pong"` || string(a.Manifest) != `{"name":"a"}` {
		t.Fatal(a, err)
	}
	if asked.URL.Path != "/call" || asked.Header.Get("Authorization") != "Bearer x" || call.Start.Command != "node" || call.Method != "ping" {
		t.Errorf("%v %v %+v", asked.URL, asked.Header, call)
	}
}

func TestAskByLambda(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIA")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_SESSION_TOKEN", "session")
	url, asked, _ := answering(t, 200, nil, `{"result":1}`)
	c := plug.New(plug.Config{Function: "longbox-plugin", Region: "eu-west-1", Endpoint: url})
	if _, err := c.Ask(t.Context(), plug.Call{Start: &plug.Start{Tenant: "tenant-1"}, Method: "ping"}); err != nil {
		t.Fatal(err)
	}
	h := asked.Header
	if asked.URL.Path != "/2015-03-31/functions/longbox-plugin/invocations" || h.Get("X-Amz-Tenant-Id") != "tenant-1" || h.Get("X-Amz-Security-Token") != "session" ||
		!strings.Contains(h.Get("Authorization"), "Credential=AKIA/") || !strings.Contains(h.Get("Authorization"), "/eu-west-1/lambda/aws4_request") ||
		!strings.Contains(h.Get("Authorization"), "x-amz-tenant-id") {
		t.Errorf("%v %v", asked.URL, h)
	}
	if _, err := c.Ask(t.Context(), plug.Call{Fetch: "https://example.org/a.jpg"}); err != nil || asked.Header.Get("X-Amz-Tenant-Id") == "tenant-1" {
		t.Errorf("%v %v", err, asked.Header)
	}
}

// Every failure is a Fault that says whether it is the plugin's.
func TestAskGoesWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body, code, says string
		status                 int
		header                 http.Header
	}{
		{"the plugin's fault", `{"fault":{"code":"RPC_ERROR","rpc":-32002,"message":"unknown"}}`, plug.RPCFailed, "unknown", 200, nil},
		{"refused", "the token is wrong", plug.Unavailable, "the operator's log", 401, nil},
		{"the function failed", `{"errorMessage":"boom"}`, plug.ProcessEnded, "more time or memory", 200, http.Header{"X-Amz-Function-Error": {"Unhandled"}}},
		{"no answer", "<html>", plug.Unavailable, "the operator's log", 200, nil}, {"sent elsewhere", "", plug.Unavailable, "the operator's log", 307, http.Header{"Location": {"http://example.org/"}}},
		{"too much", `{"result":"` + strings.Repeat("x", plug.MaxAnswer) + `"}`, plug.ProcessEnded, "larger than", 200, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, _, _ := answering(t, c.status, c.header, c.body)
			_, err := plug.New(plug.Config{URL: url, Token: "x"}).Ask(t.Context(), plug.Call{Start: &plug.Start{}, Method: "ping"})
			var f *plug.Fault
			if !errors.As(err, &f) || f.Code != c.code || !strings.Contains(f.Message, c.says) {
				t.Errorf("%+v", err)
			}
		})
	}
	var f *plug.Fault
	if _, err := plug.New(plug.Config{}).Ask(t.Context(), plug.Call{}); !errors.As(err, &f) || f.Code != plug.Unavailable {
		t.Error(err)
	}
	if _, err := plug.New(plug.Config{URL: "http://127.0.0.1:1", Token: "x"}).Ask(t.Context(), plug.Call{}); !errors.As(err, &f) || f.Code != plug.Unavailable {
		t.Error(err)
	}
	large := json.RawMessage(`"` + strings.Repeat("x", plug.MaxCall) + `"`)
	if _, err := plug.New(plug.Config{URL: "http://127.0.0.1:1", Token: "x"}).Ask(t.Context(), plug.Call{Params: large}); !errors.As(err, &f) || !strings.Contains(f.Message, "larger than") {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config plug.Config
		says   string
	}{
		{plug.Config{}, ""}, {plug.Config{URL: "http://a", Token: "x"}, ""}, {plug.Config{Function: "f", Region: "r"}, ""},
		{plug.Config{URL: "http://a"}, "PLUGIN_TOKEN"}, {plug.Config{URL: "a", Token: "x"}, "PLUGIN_URL"}, {plug.Config{URL: "http://a", Token: "x", Function: "f"}, "set one"},
		{plug.Config{Function: "f"}, "AWS_REGION"}, {plug.Config{Commands: plug.Commands{"a/b"}}, "PLUGIN_COMMANDS"},
	} {
		if err := c.config.Validate(); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}

// Variables that change which code a program runs, whom it trusts or how it connects are refused for plugins, in any
// spelling.
func TestVariablesThatPluginsMayHave(t *testing.T) {
	t.Parallel()
	for _, name := range strings.Fields("API_KEY a _x X9 NODE_ENV node_env PATHS HOMEPAGE AWSOME PROXY JAVASCRIPT PHP LUA RUNTIME") {
		if !plug.AllowEnv(name) {
			t.Errorf("%s is refused", name)
		}
	}
	for _, name := range append(strings.Fields(`PATH Path HOME TMPDIR ENV LD_PRELOAD ld_preload DYLD_INSERT_LIBRARIES PYTHONPATH PythonStartup GIT_SSH AWS_PROFILE BASH_ENV
		BASH_FUNC_ls NPM_CONFIG_registry npm_config_prefix UV_INDEX_URL RUBYOPT GEM_PATH BUNDLE_GEMFILE PERL5OPT NODE_OPTIONS NODE_EXTRA_CA_CERTS SSL_CERT_FILE OPENSSL_CONF
		SSLKEYLOGFILE HTTPS_PROXY http_proxy no_proxy XDG_CONFIG_HOME PIP_INDEX_URL PLUGIN_TOKEN GODEBUG GLIBC_TUNABLES HOSTALIASES JAVA_TOOL_OPTIONS _JAVA_OPTIONS
		JDK_JAVA_OPTIONS CLASSPATH DOTNET_STARTUP_HOOKS CORECLR_PROFILER LUA_INIT LUA_PATH_5_4 PHPRC PHP_INI_SCAN_DIR BUN_OPTIONS DENO_CERT 9A A-B A.B Ä`), "", "A=B", "A\x00", "A B") {
		if plug.AllowEnv(name) {
			t.Errorf("%q is allowed", name)
		}
	}
}
