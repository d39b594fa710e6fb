package httpapi

import (
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// writer records status and size of a response. (The one in chi's middleware package brings net/http/pprof and expvar
// into every program.)
type writer struct {
	http.ResponseWriter
	empty   bool // the request has no body
	status  int  // 0 until the header is sent
	bytes   int64
	before  func() bool // called once, before anything is sent; false: the response is dropped
	dropped bool
}

// begin reports whether the response may be sent.
func (w *writer) begin() bool {
	if before := w.before; before != nil {
		w.before = nil
		w.dropped = !before()
	}
	return !w.dropped
}

// WriteHeader sends the status. Only the first call counts.
func (w *writer) WriteHeader(status int) {
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status) // the final one follows
		return
	}
	if w.status == 0 && w.begin() {
		if status == http.StatusNoContent {
			w.Header().Del("Content-Type") // there is no content
		}
		w.status = status
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write sets the status to 200 if none was set.
func (w *writer) Write(p []byte) (int, error) {
	if w.WriteHeader(http.StatusOK); w.dropped {
		return 0, errDropped
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// ReadFrom uses the server's own ReadFrom, which may let the kernel copy the bytes.
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	if w.WriteHeader(http.StatusOK); w.dropped {
		return 0, errDropped
	}
	n, err := io.Copy(w.ResponseWriter, r)
	w.bytes += n
	return n, err
}

// FlushError sends the buffered part of a response.
func (w *writer) FlushError() error {
	if w.WriteHeader(http.StatusOK); w.dropped {
		return errDropped
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// SetReadDeadline limits the time for receiving the request's body. Without a body the server already waits for the
// client's next request: there, the deadline would cancel this request and all later ones on the connection.
func (w *writer) SetReadDeadline(at time.Time) error {
	if w.empty {
		return nil
	}
	return huma.SetReadDeadline(w.ResponseWriter, at)
}

// Unwrap lets http.ResponseController reach the server's writer.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
