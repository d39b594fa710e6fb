// Package task is the background work of every tenant: a task is a row, written in the transaction that causes
// it, claimed by a worker under a lease, and finished in one statement. The row is the truth; queues and
// notifications only wake workers up.
//
//   - Status: pending → running → completed | failed, cancelled from pending and running.
//   - Workers find tasks in two ways: they claim the most urgent of the tenant with the fewest running (Runner.Run), or
//     they are told which one by a message of a queue (Dispatcher, Runner.Take). Either way only tasks of active
//     tenants run, and no more scans of a tenant at once than tenant.max_scans.
//   - A window of each tenant's tasks has messages (queued_at); each end of a task sends the next, and the scheduler
//     what was lost.
//   - A handler that is told to pause saves its place and goes on in another run; that counts as no attempt.
//   - Claiming raises lease_epoch; every batch a worker writes first checks that it still holds that epoch
//     (db.Task), so that a paused or cancelled worker changes nothing.
//   - A parent whose own work is done stays running until its children have ended (open_children).
//   - A person may take a task from its worker (unlock) or delete all of them (nuke): what their workers still write is
//     refused.
//   - A worker that dies leaves a lease that runs out: the task goes back to pending, or fails after
//     max_attempts. The next handler learns how many have died (Held.Deaths).
//
// Tables: task; reads library, series, book, page_index, page_pack, scan, setting.
package task
