// Package queue is a client for the JSON protocol of SQS. It can send, receive, extend and delete messages.
//
//   - Requests are signed by the SDK's signer, but not sent by the SDK's SQS client, which adds 0.8 MB to every program
//     that sends. Nothing connects before its first use.
//   - A request is tried up to three times while the service does not answer, answers 5xx or throttles.
//   - Messages may arrive twice, late, out of order or never. Receivers must handle that.
package queue
