// Package sqs is a server with the JSON protocol of SQS, for tests: standard queues with visibility timeouts, long
// polls, receive counts, delays and dead-letter queues. It also injects faults that are too rare in the real service:
// it duplicates, delays, reorders and loses messages with a seeded probability, and refuses requests.
//
// It keeps everything in memory. Requests must be signed, but signatures are not verified.
package sqs
