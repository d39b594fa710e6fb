package pluginkit

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"strings"
)

// personalManifest is the manifest of a plugin for users, with a token if args contain "token", with OAuth if they
// contain a URL.
func personalManifest(args []string) object {
	out := object{"name": "personal", "displayName": "Personal", "version": "1.0.0", "protocolVersion": "1.2", "description": "For users",
		"capabilities": object{"userReadSync": true, "userRecommendationProvider": true,
			"externalIdSource": "personal", "wantsDetailedProgress": slices.Contains(args, "detailed")},
		"userConfigSchema":      object{"description": "Yours", "fields": []any{object{"key": "shelf", "label": "Shelf", "type": "string"}}},
		"userSetupInstructions": "Enter your token"}
	if slices.Contains(args, "token") {
		out["requiredCredentials"] = []any{object{"key": "access_token", "label": "Token", "required": true, "sensitive": true, "type": "password"}}
	}
	for _, a := range args {
		if strings.HasPrefix(a, "http") {
			out["oauth"] = object{"authorizationUrl": "https://example.org/authorize?from=longbox", "tokenUrl": a, "scopes": []string{"read", "write"}}
		}
	}
	return out
}

// ask sends a request to Longbox and returns its raw response.
func (p *plugin) ask(method string, params any) json.RawMessage {
	say(object{"jsonrpc": "2.0", "id": "mine", "method": method, "params": params})
	p.in.Scan()
	return json.RawMessage(p.in.Bytes())
}

// get returns the stored value of a key, in JSON.
func (p *plugin) get(key string) json.RawMessage {
	var m struct {
		Result struct{ Data json.RawMessage }
	}
	if err := json.Unmarshal(p.ask("storage/get", object{"key": key}), &m); err != nil {
		panic(err)
	}
	return m.Result.Data
}

func (p *plugin) set(key string, data any) { p.ask("storage/set", object{"key": key, "data": data}) }

// personal answers requests on behalf of a user. In the user's config, "fails" names a method that fails, with "code"
// if there is one, and "remote" is what is pulled; with "endless", there is more, but no cursor. Pushed data is stored
// under "pushed"; what is stored under "name" is the user's name.
func (p *plugin) personal(m message) (any, *failure, bool) {
	var init struct {
		UserConfig struct {
			Fails           string
			Code            int
			Endless         bool
			Remote          []json.RawMessage
			Recommendations []json.RawMessage
		}
		Credentials map[string]string
	}
	if len(p.init) > 0 {
		if err := json.Unmarshal(p.init, &init); err != nil {
			panic(err)
		}
	}
	if m.Method != "initialize" && m.Method == init.UserConfig.Fails {
		return nil, &failure{Code: cmp.Or(init.UserConfig.Code, -32004), Message: m.Method + " fails with " + init.Credentials["access_token"]}, true
	}
	switch m.Method {
	case "test/calls": // sends these requests one after the other, and returns the responses
		var in struct {
			Calls []struct {
				Method string
				Params json.RawMessage
			}
		}
		if err := json.Unmarshal(m.Params, &in); err != nil {
			panic(err)
		}
		out := []json.RawMessage{}
		for _, c := range in.Calls {
			out = append(out, p.ask(c.Method, c.Params))
		}
		return out, nil, true
	case "sync/getUserInfo":
		token := init.Credentials["access_token"]
		if token == "wrong" {
			return nil, &failure{Code: -32003, Message: "the token " + token + " is not valid"}, true
		}
		if env := os.Getenv("ACCESS_TOKEN"); env != "" && env != token {
			token += " or " + env
		}
		name := "reader"
		_ = json.Unmarshal(p.get("name"), &name) // otherwise nothing is stored
		return object{"externalId": "42", "username": name + "-" + token,
			"avatarUrl": "https://example.org/a.png", "profileUrl": "https://example.org/u/42"}, nil, true
	case "sync/status":
		return object{"externalCount": len(init.UserConfig.Remote), "pendingPush": 1, "pendingPull": 2, "conflicts": 0}, nil, true
	case "sync/pullProgress":
		var in struct{ Cursor string }
		if err := json.Unmarshal(m.Params, &in); err != nil {
			panic(err)
		}
		all := init.UserConfig.Remote
		if len(all) > 1 && in.Cursor == "" { // in two pages
			return object{"entries": all[:1], "nextCursor": "rest", "hasMore": true}, nil, true
		}
		if in.Cursor == "rest" {
			all = all[1:]
		}
		return object{"entries": append([]json.RawMessage{}, all...), "hasMore": init.UserConfig.Endless}, nil, true
	case "sync/pushProgress":
		var in struct {
			Entries []struct{ ExternalID string }
		}
		if err := json.Unmarshal(m.Params, &in); err != nil {
			panic(err)
		}
		var before []json.RawMessage
		_ = json.Unmarshal(p.get("pushed"), &before) // nothing yet
		p.set("pushed", append(before, m.Params))
		done, failed := []any{}, []any{}
		for _, e := range in.Entries {
			if e.ExternalID == "refused" {
				failed = append(failed, object{"externalId": e.ExternalID, "status": "failed", "error": "unknown"})
				continue
			}
			done = append(done, object{"externalId": e.ExternalID, "status": "updated"})
		}
		return object{"success": done, "failed": failed}, nil, true
	case "recommendations/get":
		p.set("library", m.Params)
		return object{"recommendations": append([]json.RawMessage{}, init.UserConfig.Recommendations...), "cached": false}, nil, true
	case "recommendations/dismiss":
		p.ask("storage/delete", object{"key": "library"})
		p.set("dismissed", m.Params)
		return object{"dismissed": true}, nil, true
	}
	return nil, nil, false
}
