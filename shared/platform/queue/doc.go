// Package queue speaks the JSON protocol of SQS: what sending, receiving, extending and deleting messages needs.
//
//   - Requests are signed by the SDK's signer and sent without the SDK's client for SQS, which adds 0.8 MB to every
//     program that sends; nothing connects before it is used.
//   - A request is tried three times while the service does not answer, answers 5xx or asks to slow down.
//   - Messages may come twice, late, in another order or never: who receives them must not mind.
package queue
