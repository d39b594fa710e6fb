package plug

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Size limits of calls and answers, in bytes. Lambda accepts 6 MB of each.
const (
	MaxCall   = 5 << 20
	MaxAnswer = 5 << 20
	// MaxPicture limits a fetched cover. Base64 makes it a third larger.
	MaxPicture = 2 << 20
)

// Limits of a plugin's storage per user: number of keys, and bytes of a key, of a value and of all values.
const (
	MaxKeys    = 100
	MaxKey     = 200
	MaxValue   = 1 << 20
	MaxStorage = 2 << 20
)

// MaxTimeout limits the time of one request to a plugin.
const MaxTimeout = 10 * time.Minute

// Start identifies a plugin and says how to start its process. A plugin with a changed Start gets a new process.
type Start struct {
	Tenant  string            `json:"tenant"`
	ID      string            `json:"id"`
	Name    string            `json:"name"` // for the log
	Command string            `json:"command"`
	Args    []string          `json:"args,omitempty"`
	Dir     string            `json:"dir,omitempty"` // working folder; if empty, its data folder
	Env     map[string]string `json:"env,omitempty"`
	Init    map[string]any    `json:"init,omitempty"` // parameters of the initialize request, except dataDir
}

// Call is one job: send a request to a plugin, fetch a picture that it named, send a request to an external server, or
// list or remove folders of plugins.
type Call struct {
	Start   *Start          `json:"start,omitempty"`
	Method  string          `json:"method,omitempty"` // initialize returns the manifest
	Params  json.RawMessage `json:"params,omitempty"`
	Timeout time.Duration   `json:"timeout,omitempty"` // nanoseconds, at most MaxTimeout
	Known   *Known          `json:"known,omitempty"`   // nil: the plugin may request nothing
	Fetch   string          `json:"fetch,omitempty"`   // URL of a picture, instead of the rest
	Web     *WebRequest     `json:"web,omitempty"`     // instead of the rest
	Folders *FolderCall     `json:"folders,omitempty"` // instead of the rest
}

// Known is the data that a plugin may request while it answers. It comes with the call, and changes return with the
// answer, because the function that runs plugins cannot reach Longbox.
type Known struct {
	Storage  map[string]Stored `json:"storage"`            // its storage for a user; nil: none
	Releases *Releases         `json:"releases,omitempty"` // nil: it announces no releases
}

// Stored is a value in a plugin's storage.
type Stored struct {
	Data      json.RawMessage `json:"data"`
	ExpiresAt *time.Time      `json:"expiresAt,omitempty"` // the value is gone after this
	UpdatedAt time.Time       `json:"updatedAt"`
}

// Changes are what a plugin changed while it answered, even if it failed in the end.
type Changes struct {
	Storage  map[string]*Stored `json:"storage,omitempty"` // nil: removed
	Releases *ReleaseChanges    `json:"releases,omitempty"`
}

// Answer is the result of a Call. Fault is nil if it succeeded.
type Answer struct {
	Changes  *Changes        `json:"changes,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Manifest json.RawMessage `json:"manifest,omitempty"` // of the process that answered
	Picture  []byte          `json:"picture,omitempty"`
	Web      *WebResponse    `json:"web,omitempty"`
	Folders  []Folder        `json:"folders"` // null except for a FolderCall
	Fault    *Fault          `json:"fault,omitempty"`
}

// Codes of a Fault.
const (
	SpawnFailed  = "SPAWN_FAILED"  // the process could not be started
	InitFailed   = "INIT_ERROR"    // no valid manifest in response to initialize
	ProcessEnded = "PROCESS_ERROR" // the process ended, or broke the protocol
	RPCFailed    = "RPC_ERROR"     // the plugin answered with an error
	TimedOut     = "TIMEOUT"
	Limited      = "RATE_LIMITED" // the plugin, or Longbox, accepts no more requests for a while
	FetchFailed  = "FETCH_ERROR"
	Unavailable  = "UNAVAILABLE" // plugins cannot be run at all: not this plugin's fault
)

// Fault says why a plugin has not answered.
type Fault struct {
	Code       string `json:"code"`
	RPC        int    `json:"rpc,omitempty"` // JSON-RPC error code, of RPCFailed and Limited
	Message    string `json:"message"`
	RetryAfter int    `json:"retryAfter,omitempty"` // seconds, of Limited
	Err        error  `json:"-"`                    // for the log
}

// Error returns the message for users.
func (f *Fault) Error() string { return f.Message }

// Failed makes a Fault.
func Failed(code, format string, args ...any) *Fault {
	return &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// FaultOf returns err if it is a Fault. Otherwise it returns a Fault that says that plugins are unreachable, with err
// for the log only.
func FaultOf(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	return &Fault{Code: Unavailable, Message: "Plugins are not available now; the operator's log says why", Err: err}
}
