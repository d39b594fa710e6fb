// Package lambdakit runs built function programs as AWS Lambda does, for tests and benchmarks: it speaks the runtime
// API (next, response buffered or streamed, error, init error), gives each process one invocation at a time, stops it
// (as Lambda freezes it) in between, ends it when an invocation outlasts its time, and stands in for the services that
// invoke functions: API Gateway (HTTP API and REST), application load balancer, function URL, SQS, S3 and EventBridge.
//
// What it does not do: limit processor time and memory, hide the machine's files, extensions, several invocations at
// once in one process.
package lambdakit
