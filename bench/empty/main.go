// Command empty is the smallest possible function, under Lambda and as a server. It is the baseline for the start of
// the others.
package main

import (
	"net/http"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		lambda.Start(func() {})
	}
	err := http.ListenAndServe(os.Getenv("LISTEN_ADDR"), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
	}))
	println(err.Error())
	os.Exit(1)
}
