// Command empty is the smallest HTTP server: what the start of a function is compared with.
package main

import (
	"net/http"
	"os"
)

func main() {
	err := http.ListenAndServe(os.Getenv("LISTEN_ADDR"), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
	}))
	println(err.Error())
	os.Exit(1)
}
