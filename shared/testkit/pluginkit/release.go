package pluginkit

import (
	"bytes"
	"encoding/json"
)

// releasing is the config of a plugin that announces releases.
type releasing struct {
	Early  json.RawMessage // request sent right after initialize, without waiting
	Source json.RawMessage // releaseSource in its manifest
	Calls  []struct {      // requests that it sends while it is polled
		Method string
		Params json.RawMessage
	}
	Result json.RawMessage // of a poll; {} by default
	Fails  string          // responds with this error instead
	Hangs  bool            // does not respond
}

func (p *plugin) releasing() releasing {
	var init struct{ Config releasing }
	if err := json.Unmarshal(p.init, &init); err != nil {
		panic(err)
	}
	return init.Config
}

func (p *plugin) releaseManifest() object {
	source := p.releasing().Source
	if source == nil {
		source = json.RawMessage("true")
	}
	return object{"name": "releases", "displayName": "Releases", "version": "1.0.0", "protocolVersion": "1.2", "capabilities": object{"releaseSource": source}}
}

// early sends the configured request.
func (p *plugin) early() {
	var init struct{ Config releasing }
	if json.Unmarshal(p.init, &init) == nil && init.Config.Early != nil {
		say(object{"jsonrpc": "2.0", "id": "early", "method": "releases/register_sources", "params": init.Config.Early})
	}
}

// poll sends the configured requests, with "$source" replaced by the polled source. Without a configured result, it
// returns the responses in the etag.
func (p *plugin) poll(params json.RawMessage) (any, *failure) {
	var in struct{ SourceID string }
	if err := json.Unmarshal(params, &in); err != nil {
		panic(err)
	}
	c := p.releasing()
	answers := []json.RawMessage{}
	for _, call := range c.Calls {
		answers = append(answers, p.ask(call.Method, json.RawMessage(bytes.ReplaceAll(call.Params, []byte("$source"), []byte(in.SourceID)))))
	}
	switch {
	case c.Hangs:
		for p.in.Scan() { // until it is stopped
			continue
		}
	case c.Fails != "":
		return nil, &failure{Code: -32004, Message: c.Fails}
	case c.Result != nil:
		return c.Result, nil
	}
	all, err := json.Marshal(answers)
	if err != nil {
		panic(err)
	}
	return object{"etag": string(all)}, nil
}
