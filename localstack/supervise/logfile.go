package supervise

import (
	"fmt"
	"os"
	"sync"
)

// logLimit is the size in bytes at which a log file is renamed to <name>.log.1, replacing the previous one.
const logLimit = 10 << 20

// logFile is an append-only file that never grows beyond logLimit.
type logFile struct {
	mu   sync.Mutex
	path string
	file *os.File // nil after a failed rename (a full disk): the next write reopens it
	size int64
}

func openLog(path string) (*logFile, error) {
	l := &logFile{path: path}
	return l, l.open()
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return fmt.Errorf("log: %w", err)
	}
	l.file, l.size = f, info.Size()
	if l.size > logLimit {
		return l.rotate()
	}
	return nil
}

func (l *logFile) rotate() error {
	err := l.file.Close()
	l.file = nil // closed even if Close failed
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return l.open()
}

// Write appends one line.
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	if l.size+int64(len(line)) > logLimit {
		if err := l.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	return n, err
}

func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
