// Package task is the background work of every tenant: a task is a row, written in the transaction that causes
// it, claimed by a worker under a lease, and finished in one statement. The row is the truth; queues and
// notifications only wake workers up.
//
//   - Status: pending → running → completed | failed, cancelled from pending and running.
//   - Claiming raises lease_epoch; every batch a worker writes first checks that it still holds that epoch
//     (db.Task), so that a paused or cancelled worker changes nothing.
//   - A parent whose own work is done stays running until its children have ended (open_children).
//   - A worker that dies leaves a lease that runs out: the task goes back to pending, or fails after
//     max_attempts.
//
// Tables: task.
package task
