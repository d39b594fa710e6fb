package relay

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
)

// failure is an error response to a request for a stream.
type failure struct {
	status        int
	code, message string
	retry         int      // seconds, for Retry-After; 0 for none
	refusal       *refusal // the API's own response, instead of the fields above
	cause         error    // for the log
}

func unavailable(message string, retry int, cause error) *failure {
	return &failure{status: http.StatusServiceUnavailable, code: "ServiceUnavailable", message: message, retry: retry, cause: cause}
}

// refusedBy turns an error of access into a response.
func refusedBy(err error) *failure {
	var refused *refusal
	if errors.As(err, &refused) {
		return &failure{refusal: refused, cause: err}
	}
	return unavailable("The API does not answer, so that access cannot be checked; connect again later.", 5, err)
}

func (f *failure) write(w http.ResponseWriter) int {
	if f.refusal != nil {
		maps.Copy(w.Header(), f.refusal.header)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(f.refusal.status)
		_, _ = w.Write(f.refusal.body) // the client may have left
		return f.refusal.status
	}
	body := problem(f.code, f.message)
	if f.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.retry))
		body["retry_after"] = f.retry
	}
	writeJSON(w, f.status, body)
	return f.status
}

// problem is the body of an error, as the API has it.
func problem(code, message string) map[string]any {
	return map[string]any{"error": code, "message": message, "details": nil}
}

func writeError(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, problem(code, message))
}

func writeJSON(w http.ResponseWriter, status int, body map[string]any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings, numbers and nil always encode
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may have left
}
