// Package task is the background work of every tenant. A task is a row: written in the transaction that causes it,
// claimed by a worker under a lease, and finished in one statement. The row is the truth; queues and notifications only
// wake workers.
//
//   - Status: pending → running → completed | failed, cancelled from pending and running.
//   - Workers find tasks in two ways. They claim the most urgent task of the tenant with the fewest running
//     (Runner.Run), or a queue message names the task (Dispatcher, Runner.Take). Either way only tasks of active
//     tenants run, and at most tenant.max_scans scans of a tenant at once.
//   - A window of each tenant's tasks has messages (queued_at). Each end of a task sends the next one; the scheduler
//     resends lost ones.
//   - A handler that is told to pause stores a checkpoint and continues in another run; that counts as no attempt.
//   - Claiming increments lease_epoch. Every batch that a worker writes first checks that it still holds that epoch
//     (db.Task), so that a paused or cancelled worker changes nothing.
//   - A parent whose own work is done stays running until its children have ended (open_children).
//   - A person may take a task from its worker (unlock) or delete all of them (nuke); later writes of their workers are
//     refused.
//   - If a worker dies, its lease expires: the task goes back to pending, or fails after max_attempts. The next handler
//     learns how many workers have died (Held.Deaths).
//
// Tables: task; reads library, series, book, page_index, page_pack, scan, setting, tenant.
package task
