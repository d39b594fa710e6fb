// Package metric keeps the results of background tasks, one row for each tenant, hour and type of task, and answers
// requests for them.
//
//   - The database counts, in the transaction in which a task completes or fails (app.count_task): nothing is counted
//     twice or lost, no program can forget to count, and it costs no round trip. A task that is tried again and ends
//     again is counted again. Cancelled tasks are not counted.
//   - The figures are independent of the tasks: removing tasks changes no figures, and removing figures removes no
//     task.
//   - They are kept for as long as the setting metrics.task_retention_days says. Where it is "disabled" nothing is
//     counted, answers are empty, and the next clean-up removes what was counted.
//   - What is not known is null: bytes of tasks that do not say how many they read, times of tasks that never began.
//     Percentiles come from a histogram: the time is at most 19 % more than the true one.
//
// Tables: task_metric; reads task, setting and tenant.
package metric
