// Package lambdakit runs built functions like AWS Lambda, for tests and benchmarks. It implements the runtime API
// (next, response buffered or streamed, error, init error). It gives each process one invocation at a time, stops it in
// between (as Lambda freezes it), and kills it when an invocation exceeds its time. It also simulates the invoking
// services: API Gateway (HTTP API and REST), application load balancer, function URL, SQS, S3 and EventBridge.
//
// It does not limit CPU time and memory, hide the machine's files, run extensions, or run concurrent invocations in one
// process.
package lambdakit
