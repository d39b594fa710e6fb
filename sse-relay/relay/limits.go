package relay

import (
	"sync"

	"github.com/google/uuid"
)

// limits counts connections of the process and of each user.
type limits struct {
	all, perUser int

	mu    sync.Mutex
	count int
	users map[owner]int
}

type owner struct {
	tenant uuid.UUID
	user   string
}

func newLimits(all, perUser int) *limits {
	return &limits{all: all, perUser: perUser, users: map[owner]int{}}
}

// enter takes one of the process's slots, or reports false.
func (l *limits) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count >= l.all {
		return false
	}
	l.count++
	return true
}

func (l *limits) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count--
}

// own takes one of the user's slots, or reports false.
func (l *limits) own(o owner) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users[o] >= l.perUser {
		return false
	}
	l.users[o]++
	return true
}

func (l *limits) disown(o owner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users[o]--; l.users[o] == 0 {
		delete(l.users, o)
	}
}

func (l *limits) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}
