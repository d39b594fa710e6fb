package stack

import (
	"context"
	"errors"
	"sync"

	"github.com/longbox/longbox/localstack/supervise"
)

// layer is a group of processes that stop together. Layers stop in this order, so that no process loses one that it
// needs.
type layer int

const (
	program layer = iota
	helper        // plugin, which other programs call
	storage
	cache
	database
	layers
)

// running holds the started processes.
type running struct {
	mu        sync.Mutex
	processes [layers][]*supervise.Process
}

// start starts a process and registers it for Stop.
func (s *Stack) start(ctx context.Context, l layer, spec supervise.Spec) error {
	p, err := s.supervisor.Start(ctx, spec)
	if err != nil {
		return err
	}
	s.running.mu.Lock()
	defer s.running.mu.Unlock()
	s.running.processes[l] = append(s.running.processes[l], p)
	return nil
}

// Stop stops everything in order: the front accepts no new connections, the functions finish their work, then plugins,
// the gateways, Redis (which saves) and finally the database.
func (s *Stack) Stop() error {
	ctx, cut := context.WithCancel(context.Background())
	defer cut()
	if s.front != nil {
		go s.front.Drain(ctx)
	}
	for l := range layers {
		s.stopLayer(l)
	}
	var err error
	if s.lock != nil { // we hold the data folder
		err = s.removeOperator()
	}
	if s.front != nil {
		err = errors.Join(err, s.front.Close())
	}
	if s.supervisor != nil {
		s.supervisor.Close()
	}
	if s.hold != nil {
		err = errors.Join(err, s.hold.Close())
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

func (s *Stack) stopLayer(l layer) {
	s.running.mu.Lock()
	processes := s.running.processes[l]
	s.running.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range processes {
		all.Go(p.Stop)
	}
	all.Wait()
}
