// Package metric stores metrics of background tasks, one row per tenant, hour and type of task, and serves them.
//
//   - The database counts in the transaction in which a task completes or fails (app.count_task): nothing is counted
//     twice or lost, no program can forget to count, and it takes no round trip. A task that is retried and ends again
//     is counted again. Cancelled tasks are not counted.
//   - Metrics are independent of the tasks: deleting either does not affect the other.
//   - They are kept as long as the setting metrics.task_retention_days says. If it is "disabled", nothing is counted,
//     responses are empty, and the next clean-up deletes what was counted.
//   - Unknown values are null: bytes of tasks that do not report them, times of tasks that never started. Percentiles
//     come from a histogram: they are at most 19 % too high.
//
// Tables: task_metric; reads task, setting and tenant.
package metric
