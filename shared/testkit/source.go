package testkit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

// source is where a service comes from: its address in the environment, else the installed program, else a container.
type source struct {
	setting string        // environment variable with the address
	program func() string // path of the installed program, or ""
	run     func(program string) (address string, err error)
	image   func() (address string, err error)
}

func (s source) address() (string, error) {
	if a := os.Getenv(s.setting); a != "" {
		return a, nil
	}
	if p := s.program(); p != "" {
		return s.run(p)
	}
	a, err := s.image()
	if err != nil {
		return "", fmt.Errorf("%s is not set, the program is not installed, and no container can be started: %w", s.setting, err)
	}
	return a, nil
}

// onPath looks for a program in PATH.
func onPath(name string) func() string {
	return func() string {
		p, err := exec.LookPath(name)
		if err != nil {
			return ""
		}
		return p
	}
}

// containerImage describes a container.
type containerImage struct {
	name    string // with its tag
	port    string // that it listens on
	env     map[string]string
	command []string
	// A folder of this machine, mounted at the same path. The container then has this machine's network and this user.
	folder string
}

// start starts a container and returns host:port, and a function to stop it before the test program ends.
func (i containerImage) start() (address string, stop func(), err error) {
	ctx := context.Background()
	r := testcontainers.ContainerRequest{Image: i.name, Env: i.env, Cmd: i.command}
	if i.folder != "" {
		r.User = fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
		r.HostConfigModifier = func(h *container.HostConfig) {
			h.NetworkMode, h.Binds = "host", []string{i.folder + ":" + i.folder}
		}
	} else {
		r.ExposedPorts, r.WaitingFor = []string{i.port + "/tcp"}, wait.ForListeningPort(i.port+"/tcp")
	}
	c, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{ContainerRequest: r, Started: true})
	// The rest ends with the test program.
	stop = func() { _ = testcontainers.TerminateContainer(c, testcontainers.StopTimeout(0)) }
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("%s: %w", i.name, err)
	}
	if i.folder != "" {
		return "127.0.0.1:" + i.port, stop, nil
	}
	endpoint, err := c.Endpoint(ctx, "")
	return strings.TrimPrefix(endpoint, "tcp://"), stop, err
}
