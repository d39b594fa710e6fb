// Package sqs is a server that speaks the JSON protocol of SQS, for tests: standard queues with visibility, long
// polls, receive counts, delays and dead-letter queues, and faults that the real service has too rarely to test with:
// it duplicates, delays, reorders and loses messages by a seeded chance, and refuses requests.
//
// It keeps everything in memory and believes every signature; that a request has one is checked.
package sqs
