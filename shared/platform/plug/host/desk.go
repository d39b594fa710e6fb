package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/platform/plug"
)

// desk answers requests of a process to Longbox during a call, from the known data, which it updates. A nil desk offers
// nothing.
type desk struct {
	known   plug.Known
	changes plug.Changes
}

const invalidParams = -32602 // JSON-RPC code

// serve sends the request of a call. Meanwhile the process may only request the data of that call, so calls with data
// run one after the other.
func (p *process) serve(ctx context.Context, call plug.Call, timeout time.Duration) (json.RawMessage, *plug.Changes, *plug.Fault) {
	if call.Known == nil || call.Method == "ping" && len(p.serving) > 0 { // whoever has the desk has taken the early requests
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		p.settle(nil)
		out, fault := p.ask(ctx, call.Method, call.Params)
		return out, nil, fault
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case p.serving <- struct{}{}:
	case <-p.ended:
		return nil, nil, p.why
	case <-waiting.Done():
		return nil, nil, busy()
	}
	// The desk became free after the caller had left: if both cases are ready, select takes either.
	if waiting.Err() != nil {
		<-p.serving
		return nil, nil, busy()
	}
	// The caller's cancellation must not end it: the plugin would continue with the request, and use the desk of the
	// next call.
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer end()
	d := &desk{known: *call.Known}
	if !announces(p.manifest) {
		d.known.Releases = nil
	}
	p.open(d)
	p.settle(d)
	out, fault := p.ask(ctx, call.Method, call.Params)
	p.open(nil)
	<-p.serving
	return out, &d.changes, fault
}

func busy() *plug.Fault {
	return plug.Failed(plug.Unavailable, "The plugin is busy with another request; try again")
}

func (p *process) open(d *desk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.desk = d
}

// settle answers the requests that the process sent between initialize and its first call. It runs once, with that
// call.
func (p *process) settle(d *desk) {
	p.mu.Lock()
	early := p.early
	p.early, p.served = nil, true
	answers := make([]func() message, len(early))
	for i := range early {
		answers[i] = d.answer(early[i])
	}
	p.mu.Unlock()
	for _, write := range answers {
		p.send(write())
	}
}

// answer handles a request. The returned function builds the response, which may be large; it needs no lock, because
// its data no longer changes.
func (d *desk) answer(m message) (write func() message) {
	out := message{ID: m.ID}
	do := offered[m.Method]
	if d == nil || do == nil {
		out.Error = &rpcError{Code: methodNotFound, Message: "Longbox does not offer " + cut.Brief(m.Method, 100) + " to this plugin now"}
		return func() message { return out }
	}
	result, refused := do(d, m.Params)
	if refused != nil {
		out.Error = refused
		return func() message { return out }
	}
	return func() message {
		data, err := json.Marshal(result)
		if err != nil {
			out.Error = &rpcError{Code: invalidParams, Message: err.Error()}
			return out
		}
		out.Result = data
		return out
	}
}

// offered are the methods that plugins may call.
var offered = map[string]func(d *desk, params json.RawMessage) (any, *rpcError){
	"storage/get":    (*desk).get,
	"storage/set":    (*desk).set,
	"storage/delete": (*desk).remove,
	"storage/list":   (*desk).list,
	"storage/clear":  (*desk).clear,

	"releases/list_tracked":     (*desk).listTracked,
	"releases/count_tracked":    (*desk).countTracked,
	"releases/record":           (*desk).record,
	"releases/report_progress":  (*desk).progress,
	"releases/source_state/get": (*desk).sourceState,
	"releases/source_state/set": (*desk).setSourceState,
	"releases/register_sources": (*desk).registerSources,
}

func refuse(format string, args ...any) *rpcError {
	return &rpcError{Code: invalidParams, Message: fmt.Sprintf(format, args...)}
}

// parameters decodes the parameters of a request into dst.
func parameters(params json.RawMessage, dst any) *rpcError {
	if len(params) == 0 {
		return nil
	}
	if err := json.Unmarshal(params, dst); err != nil {
		return refuse("the parameters cannot be read: %v", plug.Misread(err))
	}
	return nil
}

// named returns the parameter key, the key of a stored value.
func (d *desk) named(params json.RawMessage) (string, *rpcError) {
	var in struct{ Key string }
	if refused := parameters(params, &in); refused != nil {
		return "", refused
	}
	if d.known.Storage == nil {
		return "", refuse("this call belongs to no user, so the plugin can store nothing")
	}
	if in.Key == "" || len(in.Key) > plug.MaxKey || !utf8.ValidString(in.Key) || strings.ContainsRune(in.Key, 0) {
		return "", refuse("key must be a text of 1 to %d bytes", plug.MaxKey)
	}
	return in.Key, nil
}

// kept returns the value of a key.
func (d *desk) kept(key string) (plug.Stored, bool) {
	v, ok := d.known.Storage[key]
	return v, ok && (v.ExpiresAt == nil || v.ExpiresAt.After(time.Now()))
}

func (d *desk) get(params json.RawMessage) (any, *rpcError) {
	key, refused := d.named(params)
	if refused != nil {
		return nil, refused
	}
	v, ok := d.kept(key)
	if !ok {
		return map[string]any{"data": nil}, nil
	}
	out := map[string]any{"data": v.Data}
	if v.ExpiresAt != nil {
		out["expiresAt"] = v.ExpiresAt
	}
	return out, nil
}

func (d *desk) set(params json.RawMessage) (any, *rpcError) {
	key, refused := d.named(params)
	if refused != nil {
		return nil, refused
	}
	var in struct {
		Data      json.RawMessage
		ExpiresAt *time.Time
	}
	if refused := parameters(params, &in); refused != nil {
		return nil, refused
	}
	in.Data = bytes.ToValidUTF8(in.Data, []byte("\ufffd"))
	switch {
	case len(in.Data) == 0:
		return nil, refuse("data is missing")
	case len(in.Data) > plug.MaxValue:
		return nil, refuse("data must have at most %d bytes", plug.MaxValue)
	}
	if at := in.ExpiresAt; at != nil && (at.Year() < 1970 || at.Year() > 9000) {
		return nil, refuse("expiresAt must be between the years 1970 and 9000")
	}
	size, keys := len(key)+weight(in.Data), 1
	for k, v := range d.known.Storage {
		if _, ok := d.kept(k); ok && k != key {
			size, keys = size+len(k)+weight(v.Data), keys+1
		}
	}
	if keys > plug.MaxKeys || size > plug.MaxStorage {
		return nil, refuse("a user's storage is limited to %d keys and %d bytes", plug.MaxKeys, plug.MaxStorage)
	}
	v := plug.Stored{Data: in.Data, ExpiresAt: in.ExpiresAt, UpdatedAt: time.Now().UTC()}
	d.put(key, &v)
	return map[string]bool{"success": true}, nil
}

// weight returns the size of a value in JSON, with some characters escaped.
func weight(data json.RawMessage) int {
	out := len(data) + 5*(bytes.Count(data, []byte("<"))+bytes.Count(data, []byte(">"))+bytes.Count(data, []byte("&")))
	return out + 3*(bytes.Count(data, []byte("\u2028"))+bytes.Count(data, []byte("\u2029")))
}

// put sets the value of a key. nil removes it.
func (d *desk) put(key string, v *plug.Stored) {
	_, known := d.known.Storage[key]
	if _, changed := d.changes.Storage[key]; v == nil && !known && !changed {
		return
	}
	if d.changes.Storage == nil {
		d.changes.Storage = map[string]*plug.Stored{}
	}
	d.changes.Storage[key] = v
	if v == nil {
		delete(d.known.Storage, key)
	} else {
		d.known.Storage[key] = *v
	}
}

func (d *desk) remove(params json.RawMessage) (any, *rpcError) {
	key, refused := d.named(params)
	if refused != nil {
		return nil, refused
	}
	_, ok := d.kept(key)
	d.put(key, nil)
	return map[string]bool{"deleted": ok}, nil
}

// entry is a key in a list.
type entry struct {
	Key       string     `json:"key"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	UpdatedAt time.Time  `json:"updatedAt"`
}

func (d *desk) list(json.RawMessage) (any, *rpcError) {
	out := []entry{}
	for _, key := range slices.Sorted(maps.Keys(d.known.Storage)) {
		if v, ok := d.kept(key); ok {
			out = append(out, entry{key, v.ExpiresAt, v.UpdatedAt})
		}
	}
	return map[string]any{"keys": out}, nil
}

func (d *desk) clear(json.RawMessage) (any, *rpcError) {
	n := 0
	for _, key := range slices.Collect(maps.Keys(d.known.Storage)) {
		if _, ok := d.kept(key); ok {
			n++
		}
		d.put(key, nil)
	}
	return map[string]int{"deletedCount": n}, nil
}
