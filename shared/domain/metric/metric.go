package metric

import (
	"math"
	"time"
)

// Tasks holds the metrics within the retention period, and the current queue.
type Tasks struct {
	UpdatedAt time.Time `json:"updatedAt"`
	Retention string    `json:"retention" enum:"disabled,7,30,90,180" doc:"Number of days that metrics are kept; disabled means that none are kept"`
	Summary   Summary   `json:"summary"`
	ByType    []Type    `json:"byType" nullable:"false" doc:"Metrics by type of task, ordered by name"`
	Queue     Queue     `json:"queue"`
}

// Summary holds the metrics of all types together.
type Summary struct {
	TotalExecuted  int64    `json:"totalExecuted" doc:"Number of tasks that completed or failed; cancelled tasks are not counted"`
	TotalSucceeded int64    `json:"totalSucceeded"`
	TotalFailed    int64    `json:"totalFailed"`
	AvgDurationMs  *float64 `json:"avgDurationMs" doc:"Time from when a worker first took the task until its end; null if no task was taken"`
	AvgQueueWaitMs *float64 `json:"avgQueueWaitMs" doc:"Time until a worker took the task, for tasks that were taken once; null if there are none"`
	TasksPerMinute float64  `json:"tasksPerMinute" doc:"Since the start of the first hour with metrics"`
}

// Type holds the metrics of one type of task.
type Type struct {
	TaskType         string     `json:"taskType" example:"scan_library"`
	Executed         int64      `json:"executed"`
	Succeeded        int64      `json:"succeeded"`
	Failed           int64      `json:"failed"`
	Retried          int64      `json:"retried" doc:"Number of tasks that took more than one attempt"`
	ErrorRatePct     float64    `json:"errorRatePct" minimum:"0" maximum:"100"`
	MinDurationMs    *int64     `json:"minDurationMs"`
	MaxDurationMs    *int64     `json:"maxDurationMs"`
	AvgDurationMs    *float64   `json:"avgDurationMs"`
	P50DurationMs    *int64     `json:"p50DurationMs" doc:"Median duration from a histogram: up to 19 % more than the true value"`
	P95DurationMs    *int64     `json:"p95DurationMs" doc:"95th percentile of the duration from a histogram, with the same accuracy"`
	AvgQueueWaitMs   *float64   `json:"avgQueueWaitMs"`
	ItemsProcessed   *int64     `json:"itemsProcessed" doc:"Number of files, books or pages, as reported by the tasks; null if tasks of this type do not report it"`
	BytesProcessed   *int64     `json:"bytesProcessed" doc:"Null if tasks of this type do not report it"`
	ThroughputPerSec *float64   `json:"throughputPerSec" doc:"Items per second of the tasks' duration"`
	LastError        *string    `json:"lastError"`
	LastErrorAt      *time.Time `json:"lastErrorAt"`
}

// Queue counts the unfinished tasks.
type Queue struct {
	PendingCount       int64  `json:"pendingCount" db:"pending"`
	ProcessingCount    int64  `json:"processingCount" db:"running"`
	StaleCount         int64  `json:"staleCount" db:"stale" doc:"Number of running tasks whose worker has not responded for longer than its lease"`
	OldestPendingAgeMs *int64 `json:"oldestPendingAgeMs" db:"oldest_ms" doc:"Time since the oldest pending task that is due was added; null if there is none"`
}

// History holds the metrics over time.
type History struct {
	From        time.Time `json:"from"`
	To          time.Time `json:"to"`
	Granularity string    `json:"granularity" enum:"hour,day"`
	Points      []Point   `json:"points" nullable:"false" doc:"Oldest first; hours and days in which no task ended are omitted"`
}

// Point holds the metrics of one hour or day, in UTC.
type Point struct {
	PeriodStart    time.Time `json:"periodStart"`
	TaskType       *string   `json:"taskType" doc:"Null for all types together"`
	Count          int64     `json:"count"`
	Succeeded      int64     `json:"succeeded"`
	Failed         int64     `json:"failed"`
	MinDurationMs  *int64    `json:"minDurationMs"`
	MaxDurationMs  *int64    `json:"maxDurationMs"`
	AvgDurationMs  *float64  `json:"avgDurationMs"`
	ItemsProcessed *int64    `json:"itemsProcessed"`
	BytesProcessed *int64    `json:"bytesProcessed"`
}

// figures are sums over rows of task_metric; the columns are described there.
type figures struct {
	Succeeded  int64  `db:"succeeded"`
	Failed     int64  `db:"failed"`
	Timed      int64  `db:"timed"`
	DurationMs int64  `db:"duration_ms"`
	MinMs      *int64 `db:"min_ms"`
	MaxMs      *int64 `db:"max_ms"`
	Items      *int64 `db:"items"`
	Bytes      *int64 `db:"bytes"`
}

// typeRow holds the sums of one type.
type typeRow struct {
	figures
	Type      string    `db:"type"`
	Since     time.Time `db:"since"` // its first hour
	Retried   int64     `db:"retried"`
	Waited    int64     `db:"waited"`
	WaitMs    int64     `db:"wait_ms"`
	Durations []int64   `db:"durations"`
}

// failure is the last failure of a type of task; zero if there was none.
type failure struct {
	Type  string     `db:"type"`
	Error *string    `db:"last_error"`
	At    *time.Time `db:"last_error_at"`
}

func (r *typeRow) record(last failure) Type {
	t := Type{TaskType: r.Type, Executed: r.Succeeded + r.Failed, Succeeded: r.Succeeded, Failed: r.Failed, Retried: r.Retried,
		MinDurationMs: r.MinMs, MaxDurationMs: r.MaxMs, AvgDurationMs: average(r.DurationMs, r.Timed),
		P50DurationMs: r.percentile(50), P95DurationMs: r.percentile(95), AvgQueueWaitMs: average(r.WaitMs, r.Waited),
		ItemsProcessed: r.Items, BytesProcessed: r.Bytes, LastError: last.Error, LastErrorAt: last.At}
	t.ErrorRatePct = 100 * float64(t.Failed) / float64(t.Executed)
	if r.Items != nil {
		t.ThroughputPerSec = average(1000**r.Items, r.DurationMs)
	}
	return t
}

// percentile returns the time, in milliseconds, within which that many percent of the tasks ended: the upper bound of
// the histogram bucket of the last of them, but at most the maximum. It is nil if no task has a time.
func (r *typeRow) percentile(percent int64) *int64 {
	left := (r.Timed*percent + 99) / 100
	for i, n := range r.Durations {
		if left -= n; n > 0 && left <= 0 {
			end := *r.MaxMs
			if i < len(r.Durations)-1 {
				end = min(end, int64(math.Pow(2, float64(i+1)/4)))
			}
			return &end
		}
	}
	return nil
}

// summarize sums up the types; now is the end of the period.
func summarize(rows []typeRow, now time.Time) Summary {
	var s Summary
	var timed, duration, waited, wait int64
	since := now
	for _, r := range rows {
		s.TotalSucceeded += r.Succeeded
		s.TotalFailed += r.Failed
		timed, duration = timed+r.Timed, duration+r.DurationMs
		waited, wait = waited+r.Waited, wait+r.WaitMs
		if r.Since.Before(since) {
			since = r.Since
		}
	}
	s.TotalExecuted = s.TotalSucceeded + s.TotalFailed
	s.AvgDurationMs, s.AvgQueueWaitMs = average(duration, timed), average(wait, waited)
	if s.TotalExecuted > 0 {
		s.TasksPerMinute = float64(s.TotalExecuted) / max(1, now.Sub(since).Minutes())
	}
	return s
}

// average returns nil if n is zero.
func average(sum, n int64) *float64 {
	if n == 0 {
		return nil
	}
	return new(float64(sum) / float64(n))
}
