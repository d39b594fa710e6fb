package httpapi

import (
	"io"
	"net/http"
)

// writer knows what became of an answer. (That of chi's middleware package brings net/http/pprof and expvar into every
// program.)
type writer struct {
	http.ResponseWriter
	status  int // 0 until it is out
	bytes   int64
	before  func() bool // asked once, before anything goes out; false: the answer is dropped
	dropped bool
}

// begin tells whether the answer may go out.
func (w *writer) begin() bool {
	if before := w.before; before != nil {
		w.before = nil
		w.dropped = !before()
	}
	return !w.dropped
}

// WriteHeader sends the status; of several the first counts.
func (w *writer) WriteHeader(status int) {
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status) // the real one is still to come
		return
	}
	if w.status == 0 && w.begin() {
		if status == http.StatusNoContent {
			w.Header().Del("Content-Type") // of nothing
		}
		w.status = status
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write makes the status 200 where there is none.
func (w *writer) Write(p []byte) (int, error) {
	if w.WriteHeader(http.StatusOK); w.dropped {
		return 0, errDropped
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// ReadFrom keeps the server's own way of copying, which may leave the bytes to the kernel.
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	if w.WriteHeader(http.StatusOK); w.dropped {
		return 0, errDropped
	}
	n, err := io.Copy(w.ResponseWriter, r)
	w.bytes += n
	return n, err
}

// FlushError sends what there is of an answer.
func (w *writer) FlushError() error {
	if w.WriteHeader(http.StatusOK); w.dropped {
		return errDropped
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController reach the server's writer.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
