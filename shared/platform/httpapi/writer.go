package httpapi

import (
	"io"
	"net/http"
)

// writer knows what became of an answer. (That of chi's middleware package brings net/http/pprof and expvar into every
// program.)
type writer struct {
	http.ResponseWriter
	status int // 0 until it is out
	bytes  int64
}

// WriteHeader sends the status; of several the first counts.
func (w *writer) WriteHeader(status int) {
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status) // the real one is still to come
		return
	}
	if w.status == 0 {
		if status == http.StatusNoContent {
			w.Header().Del("Content-Type") // of nothing
		}
		w.status = status
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write makes the status 200 where there is none.
func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// ReadFrom keeps the server's own way of copying, which may leave the bytes to the kernel.
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	w.WriteHeader(http.StatusOK)
	n, err := io.Copy(w.ResponseWriter, r)
	w.bytes += n
	return n, err
}

// Unwrap lets http.ResponseController reach the server's writer.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
