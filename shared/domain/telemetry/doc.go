// Package telemetry takes what web clients measure of themselves and forwards it to the collector that the operator
// names, by the OpenTelemetry protocol over HTTP (https://opentelemetry.io/docs/specs/otlp/). Longbox looks at none of
// it and keeps none. Nothing of the request but the body and its type is passed on: neither who sent it, nor a
// credential.
//
// Without a collector clients are told so, and what they send all the same is refused.
//
// Tables: none.
package telemetry
