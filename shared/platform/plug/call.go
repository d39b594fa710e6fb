package plug

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Bounds of what goes to a plugin and comes back, in bytes. Lambda takes 6 MB of each.
const (
	MaxCall   = 5 << 20
	MaxAnswer = 5 << 20
	// MaxPicture is the largest cover that is fetched: base64 makes it a third larger.
	MaxPicture = 2 << 20
)

// Bounds of what a plugin keeps for a user: keys, the bytes of a key, of a value, and of all together.
const (
	MaxKeys    = 100
	MaxKey     = 200
	MaxValue   = 1 << 20
	MaxStorage = 2 << 20
)

// MaxTimeout bounds the time that a plugin has for one request.
const MaxTimeout = 10 * time.Minute

// Start is whose process a plugin is, and how it is started: started otherwise, it is another process.
type Start struct {
	Tenant  string            `json:"tenant"`
	ID      string            `json:"id"`
	Name    string            `json:"name"` // in the log
	Command string            `json:"command"`
	Args    []string          `json:"args,omitempty"`
	Dir     string            `json:"dir,omitempty"` // it starts in; its own data folder where empty
	Env     map[string]string `json:"env,omitempty"`
	Init    map[string]any    `json:"init,omitempty"` // parameters of the request initialize, less dataDir
}

// Call is one thing to do: a plugin is to answer a request, a picture that it has named to be fetched, a server of
// somebody else to be asked, or files of plugins to be removed.
type Call struct {
	Start   *Start          `json:"start,omitempty"`
	Method  string          `json:"method,omitempty"` // initialize answers with the manifest
	Params  json.RawMessage `json:"params,omitempty"`
	Timeout time.Duration   `json:"timeout,omitempty"` // nanoseconds, at most MaxTimeout
	Known   *Known          `json:"known,omitempty"`   // nil: the plugin may ask for nothing
	Fetch   string          `json:"fetch,omitempty"`   // the address of a picture, instead of the rest
	Web     *WebRequest     `json:"web,omitempty"`     // instead of the rest
	Folders *FolderCall     `json:"folders,omitempty"` // instead of the rest
}

// Known is what a plugin may ask Longbox for while it answers. It comes with the call, and what the plugin changes goes
// back with the answer, since the function that runs plugins reaches nothing of Longbox.
type Known struct {
	Storage  map[string]Stored `json:"storage"`            // what it keeps for a user; nil: it keeps nothing
	Releases *Releases         `json:"releases,omitempty"` // nil: it announces none
}

// Stored is a value that a plugin keeps.
type Stored struct {
	Data      json.RawMessage `json:"data"`
	ExpiresAt *time.Time      `json:"expiresAt,omitempty"` // after it there is none
	UpdatedAt time.Time       `json:"updatedAt"`
}

// Changes are what a plugin has changed while it answered, also where it failed in the end.
type Changes struct {
	Storage  map[string]*Stored `json:"storage,omitempty"` // nil: removed
	Releases *ReleaseChanges    `json:"releases,omitempty"`
}

// Answer is what came of a Call: Fault is nil where it succeeded.
type Answer struct {
	Changes  *Changes        `json:"changes,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Manifest json.RawMessage `json:"manifest,omitempty"` // of the process that answered
	Picture  []byte          `json:"picture,omitempty"`
	Web      *WebResponse    `json:"web,omitempty"`
	Folders  []Folder        `json:"folders"` // null but for a FolderCall
	Fault    *Fault          `json:"fault,omitempty"`
}

// The codes of a Fault.
const (
	SpawnFailed  = "SPAWN_FAILED"  // the process could not be started
	InitFailed   = "INIT_ERROR"    // it did not answer initialize with a manifest
	ProcessEnded = "PROCESS_ERROR" // it ended, or broke the protocol
	RPCFailed    = "RPC_ERROR"     // it answered with an error
	TimedOut     = "TIMEOUT"
	Limited      = "RATE_LIMITED" // it, or Longbox, takes no more requests for a while
	FetchFailed  = "FETCH_ERROR"
	Unavailable  = "UNAVAILABLE" // plugins cannot be run at all: nothing that this one has done
)

// Fault is why a plugin has not answered.
type Fault struct {
	Code       string `json:"code"`
	RPC        int    `json:"rpc,omitempty"` // the error's code in JSON-RPC, of RPCFailed and Limited
	Message    string `json:"message"`
	RetryAfter int    `json:"retryAfter,omitempty"` // seconds, of Limited
	Err        error  `json:"-"`                    // for the log
}

// Error says what went wrong, for people.
func (f *Fault) Error() string { return f.Message }

// Failed makes a Fault.
func Failed(code, format string, args ...any) *Fault {
	return &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// FaultOf is the Fault that an error is, or one that says that plugins cannot be asked; the cause is for the log alone.
func FaultOf(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	return &Fault{Code: Unavailable, Message: "Plugins cannot be asked now; the operator's log says why", Err: err}
}
