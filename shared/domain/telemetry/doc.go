// Package telemetry receives the telemetry of web clients and forwards it to the operator's collector, with the
// OpenTelemetry protocol over HTTP (https://opentelemetry.io/docs/specs/otlp/). Longbox neither inspects nor stores it.
// Only the body and its type are forwarded: neither the sender nor a credential.
//
// Without a collector, the configuration says so, and requests are refused.
//
// Tables: none.
package telemetry
