package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/longbox/longbox/shared/platform/confine"
	"github.com/longbox/longbox/shared/platform/plug"
)

// Config says which programs may run, and how.
type Config struct {
	Commands  plug.Commands `env:"PLUGIN_COMMANDS" envSeparator:","`
	Data      string        `env:"PLUGIN_DATA_DIR" envDefault:"/tmp/longbox-plugins"` // has a folder for each plugin
	Processes int           `env:"PLUGIN_PROCESSES" envDefault:"8"`                   // concurrent processes
	Idle      time.Duration `env:"PLUGIN_IDLE" envDefault:"5m"`                       // after which an idle process ends
	// Confine makes the kernel limit plugins to the system's programs, Folders and their data folder.
	Confine bool     `env:"PLUGIN_CONFINE" envDefault:"true"`
	Folders []string `env:"PLUGIN_FOLDERS" envSeparator:":"`
}

// Validate returns an error that names the invalid setting.
func (c Config) Validate() error {
	switch {
	case !filepath.IsAbs(c.Data):
		return fmt.Errorf("PLUGIN_DATA_DIR: must be an absolute path, is %q", c.Data)
	case c.Processes < 1 || c.Processes > 100:
		return fmt.Errorf("PLUGIN_PROCESSES: must be 1 to 100, is %d", c.Processes)
	case c.Idle < time.Second || c.Idle > 24*time.Hour:
		return fmt.Errorf("PLUGIN_IDLE: must be 1s to 24h, is %s", c.Idle)
	case slices.ContainsFunc(c.Folders, func(f string) bool { return !filepath.IsAbs(f) }):
		return errors.New("PLUGIN_FOLDERS: must be absolute paths separated by colons")
	case c.Confine && slices.ContainsFunc(slices.Concat(system.Run, c.Folders), func(f string) bool { return within(c.Data, f) }):
		return fmt.Errorf("PLUGIN_DATA_DIR: must not be inside a folder that all plugins may read, is %q", c.Data)
	}
	return c.Commands.Validate()
}

// within reports whether a path is the folder or inside it.
func within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// defaultTimeout is the time limit of a call without one.
const defaultTimeout = 30 * time.Second

// Host handles calls.
type Host struct {
	config Config
	fetch  func(ctx context.Context, address string) (*plug.Answer, *plug.Fault)
	web    func(ctx context.Context, r *plug.WebRequest) (*plug.Answer, *plug.Fault)

	mu       sync.Mutex
	slots    map[plugin]*slot
	running  map[*process]bool // processes that have not ended
	starting int
	life     context.Context // ends with the host
	close    context.CancelFunc
	ends     sync.WaitGroup // everything that starts or runs
}

// plugin identifies a plugin of a tenant. It has one process.
type plugin struct{ tenant, id string }

// slot holds one process and the number of its current users. sum identifies its Start. When ready is closed, either
// process or fault is set.
type slot struct {
	sum     [sha256.Size]byte
	ready   chan struct{}
	giveUp  context.CancelFunc // cancels the start
	process *process
	fault   *plug.Fault
	users   int
	began   time.Time
	used    time.Time
	retired bool // removed; ends when nobody uses it
}

// New makes a Host. Nothing runs before the first call.
func New(c Config) (*Host, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Confine {
		if err := confine.Offered(confine.Moving); err != nil {
			slog.Warn("plugins do not run: this machine cannot keep them away from its files; set PLUGIN_CONFINE=false to run them anyway", "error", err)
		} else if err := confine.Offered(confine.Emptying); err != nil {
			slog.Warn("plugins can truncate files of the user that they run as, because the kernel is older than Linux 6.2", "error", err)
		}
	}
	h := &Host{config: c, fetch: outside().picture, web: sending(publicOnly, configured).web, slots: map[plugin]*slot{}, running: map[*process]bool{}}
	h.life, h.close = context.WithCancel(context.Background())
	return h, nil
}

// Do handles a call. Errors are in the answer.
func (h *Host) Do(ctx context.Context, call plug.Call) *plug.Answer {
	h.sweep()
	timeout := cmp.Or(max(call.Timeout, 0), defaultTimeout)
	if call.Fetch != "" || call.Web != nil || call.Folders != nil {
		ctx, cancel := context.WithTimeout(ctx, min(timeout, defaultTimeout))
		defer cancel()
		switch {
		case call.Fetch != "":
			return orFault(h.fetch(ctx, call.Fetch))
		case call.Web != nil:
			return orFault(h.web(ctx, call.Web))
		}
		return h.folders(ctx, call.Folders)
	}
	if call.Start == nil || call.Method == "" {
		return orFault(nil, plug.Failed(plug.Unavailable, "The call must name a plugin and a method"))
	}
	timeout = min(timeout, plug.MaxTimeout)
	s, fault := h.take(ctx, call.Start, timeout)
	if fault != nil {
		return orFault(nil, fault)
	}
	defer h.give(s)
	out := &plug.Answer{Manifest: s.process.manifest}
	if call.Method != "initialize" {
		out.Result, out.Changes, fault = s.process.serve(ctx, call, timeout)
	}
	out.Fault = fault
	return out
}

func orFault(out *plug.Answer, fault *plug.Fault) *plug.Answer {
	if fault != nil {
		return &plug.Answer{Fault: fault}
	}
	return out
}

// take returns the process of a plugin, and starts it if necessary. The caller must give it back. A plugin with a
// changed Start or a worn process gets a new process. So does one that has not started within startTime: in Lambda,
// nothing runs between two calls.
func (h *Host) take(ctx context.Context, s *plug.Start, timeout time.Duration) (*slot, *plug.Fault) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, plug.FaultOf(err)
	}
	of, sum := plugin{s.Tenant, s.ID}, sha256.Sum256(data)
	h.mu.Lock()
	at := h.slots[of]
	if at != nil && (at.sum != sum || at.late() || at.process != nil && (at.process.gone() || at.process.taken.Load() > worn)) {
		h.retire(of, at)
		at = nil
	}
	if at == nil {
		if h.life.Err() != nil || !h.room() {
			h.mu.Unlock()
			f := plug.Failed(plug.Limited, "All %d plugin processes are busy; try again", h.config.Processes)
			f.RetryAfter = 5
			return nil, f
		}
		life, giveUp := context.WithCancel(h.life)
		at = &slot{sum: sum, ready: make(chan struct{}), giveUp: giveUp, began: time.Now()}
		h.slots[of] = at
		h.starting++
		h.ends.Go(func() { h.fill(life, of, at, s) })
	}
	at.users++
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case <-at.ready:
	case <-ctx.Done():
		h.give(at)
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded) && timeout < startTime:
			return nil, starting()
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return nil, plug.Failed(plug.TimedOut, "The plugin has not started in time")
		}
		return nil, plug.Failed(plug.Unavailable, "The request was cancelled before the plugin started")
	}
	if at.fault != nil {
		h.give(at)
		if at.fault.Code == plug.TimedOut && timeout < startTime {
			return nil, starting()
		}
		return nil, at.fault
	}
	return at, nil
}

// starting is the fault for a call that did not wait for a whole start: no failure of the plugin.
func starting() *plug.Fault {
	return plug.Failed(plug.Unavailable, "The plugin is still starting; try again")
}

// late reports whether the process should have started by now.
func (s *slot) late() bool {
	return s.process == nil && s.fault == nil && time.Since(s.began) > startTime
}

// fill starts the process of a slot, for all who wait for it, and returns when the process has ended.
func (h *Host) fill(ctx context.Context, of plugin, at *slot, s *plug.Start) {
	p, fault := h.start(ctx, s)
	h.mu.Lock()
	h.starting--
	at.process, at.fault, at.used = p, fault, time.Now()
	if p != nil {
		h.running[p] = true
	}
	if fault != nil && h.slots[of] == at {
		delete(h.slots, of)
	}
	h.endUnused(at)
	if p != nil && h.life.Err() != nil { // the host was closed meanwhile
		go p.stop()
	}
	h.mu.Unlock()
	at.giveUp() // the start is over
	close(at.ready)
	if p != nil {
		<-p.ended
		h.mu.Lock()
		delete(h.running, p)
		h.mu.Unlock()
	}
}

// retire removes a slot. Its process ends when nobody uses it.
func (h *Host) retire(of plugin, s *slot) {
	delete(h.slots, of)
	s.retired = true
	h.endUnused(s)
}

// endUnused ends the process of a retired slot, or its start, if nobody uses it.
func (h *Host) endUnused(s *slot) {
	switch {
	case !s.retired || s.users > 0:
	case s.process != nil:
		go s.process.stop()
	default:
		s.giveUp()
	}
}

// room reports whether another process may run. If necessary it ends the process that is unused for the longest time.
// At most as many again may be about to end.
func (h *Host) room() bool {
	if len(h.running)+h.starting >= 2*h.config.Processes {
		return false
	}
	if len(h.slots) < h.config.Processes {
		return true
	}
	return h.drop(func(*slot) bool { return true }, 1) > 0
}

// drop retires at most n unused slots that meet a condition, the longest unused first.
func (h *Host) drop(condition func(*slot) bool, n int) (dropped int) {
	all := slices.SortedFunc(maps.Keys(h.slots), func(a, b plugin) int { return h.slots[a].used.Compare(h.slots[b].used) })
	for _, of := range all {
		if s := h.slots[of]; dropped < n && s.users == 0 && s.process != nil && condition(s) {
			h.retire(of, s)
			dropped++
		}
	}
	return dropped
}

func (h *Host) give(s *slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.users--
	s.used = time.Now()
	h.endUnused(s)
}

// sweep ends idle processes and forgets ended ones.
func (h *Host) sweep() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(func(s *slot) bool { return s.process.gone() || time.Since(s.used) >= h.config.Idle }, len(h.slots))
}

// Run ends idle processes until ctx ends, and then all (Close), even during calls: the program must end soon, and the
// processes below a plugin would survive if it were killed.
func (h *Host) Run(ctx context.Context) error {
	tick := time.NewTicker(max(h.config.Idle/10, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.sweep()
		case <-ctx.Done():
			h.Close()
			return nil
		}
	}
}

// Close ends every process, even those in use, and prevents new ones.
func (h *Host) Close() {
	h.mu.Lock()
	h.close()
	all := slices.Collect(maps.Keys(h.running))
	clear(h.slots)
	h.mu.Unlock()
	for _, p := range all {
		go p.stop()
	}
	h.ends.Wait()
}

// start runs the process of a Start in its own folder.
func (h *Host) start(ctx context.Context, s *plug.Start) (*process, *plug.Fault) {
	if !h.config.Commands.Allow(s.Command) {
		return nil, plug.Failed(plug.Unavailable, "The command %q is not allowed; the operator of this installation allows: %s", s.Command, h.config.Commands)
	}
	path, err := exec.LookPath(s.Command)
	if err != nil {
		return nil, plug.Failed(plug.SpawnFailed, "The command %q cannot be run here: %v", s.Command, err)
	}
	data := filepath.Join(h.config.Data, folder(s.Tenant), folder(s.ID))
	if err := h.home(data); err != nil {
		slog.Error("cannot prepare the data folder of a plugin", "plugin", s.Name, "tenant", s.Tenant, "error", err)
		return nil, plug.Failed(plug.Unavailable, "The plugin's data folder cannot be used; the operator's log says why")
	}
	args := s.Args
	if h.config.Confine {
		self, err := os.Executable()
		if err := errors.Join(err, confine.Offered(confine.Moving)); err != nil {
			return nil, plug.Failed(plug.Unavailable, "Plugins do not run here, because this machine cannot keep them away from its files. The operator can set PLUGIN_CONFINE=false")
		}
		path, args = confine.Command(self, path, h.rules(path, data), args)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = cmp.Or(s.Dir, data), environment(data, s)
	init := maps.Clone(s.Init)
	if init == nil {
		init = map[string]any{}
	}
	init["dataDir"] = data
	slog.Info("plugin starts", "plugin", s.Name, "tenant", s.Tenant, "command", s.Command)
	return start(ctx, cmd, s, init)
}

// home creates a plugin's folder, below one that only this user can change.
func (h *Host) home(data string) error {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	i, err := os.Stat(h.config.Data)
	if err != nil {
		return err
	}
	if owner, ok := i.Sys().(*syscall.Stat_t); i.Mode().Perm()&0o022 != 0 || ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("PLUGIN_DATA_DIR: %s must belong to the user of this program, and no other user may write to it", h.config.Data)
	}
	return nil
}

// system is what programs need of the system, without any data of users or of Longbox.
var system = confine.Rules{
	Read: []string{"/proc", "/sys/fs/cgroup", "/dev/urandom", "/dev/random", "/dev/zero", "/run/systemd/resolve", "/run/resolvconf",
		"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/etc/ca-certificates", "/etc/resolv.conf", "/etc/hosts",
		"/etc/host.conf", "/etc/gai.conf", "/etc/nsswitch.conf", "/etc/services", "/etc/passwd", "/etc/group", "/etc/localtime", "/etc/os-release",
		"/etc/debian_version", "/etc/mime.types", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/nodejs"},
	Run: []string{"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64",
		"/usr/libexec", "/usr/share", "/usr/local/bin", "/usr/local/lib", "/usr/local/share",
		"/usr/include", "/bin", "/sbin", "/lib", "/lib64"},
	Write:     []string{"/dev/null"},
	Powerless: true,
}

// rules returns which files a plugin may access.
func (h *Host) rules(program, data string) confine.Rules {
	r := system
	r.Run = append(slices.Clone(r.Run), h.config.Folders...)
	if real, err := filepath.EvalSymlinks(program); err == nil {
		r.Run = append(r.Run, real)
	}
	r.Write = append(slices.Clone(r.Write), data)
	return r
}

// folder turns a name into a safe folder name.
func folder(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return cmp.Or(clean, "_")
}

// environment returns the environment of a process: PATH, a home of its own, and the variables of its Start.
func environment(dir string, s *plug.Start) []string {
	out := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "LANG=C.UTF-8"}
	for name, value := range s.Env {
		if plug.AllowEnv(name) && !strings.ContainsRune(value, 0) {
			out = append(out, name+"="+value)
		}
	}
	return out
}
