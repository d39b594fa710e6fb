package plugin

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// Metrics is how requests to plugins fared since they were added.
type Metrics struct {
	Plugins   []OneMetrics   `json:"plugins" nullable:"false"`
	Summary   MetricsSummary `json:"summary"`
	UpdatedAt time.Time      `json:"updatedAt"`
}

// OneMetrics is how requests to one fared.
type OneMetrics struct {
	PluginID            uuid.UUID                `json:"pluginId"`
	PluginName          string                   `json:"pluginName"`
	HealthStatus        string                   `json:"healthStatus"`
	RequestsTotal       int64                    `json:"requestsTotal"`
	RequestsSuccess     int64                    `json:"requestsSuccess"`
	RequestsFailed      int64                    `json:"requestsFailed"`
	RateLimitRejections int64                    `json:"rateLimitRejections"`
	AvgDurationMs       float64                  `json:"avgDurationMs"`
	ErrorRatePct        float64                  `json:"errorRatePct"`
	ByMethod            map[string]MethodMetrics `json:"byMethod"`
	FailureCounts       map[string]int64         `json:"failureCounts" doc:"Number of failures in the last 30 days, by code"`
	LastFailure         *time.Time               `json:"lastFailure"`
	LastSuccess         *time.Time               `json:"lastSuccess"`
}

// MethodMetrics is how requests of one method fared.
type MethodMetrics struct {
	Method          string  `json:"method"`
	RequestsTotal   int64   `json:"requestsTotal"`
	RequestsSuccess int64   `json:"requestsSuccess"`
	RequestsFailed  int64   `json:"requestsFailed"`
	AvgDurationMs   float64 `json:"avgDurationMs"`
}

// MetricsSummary is about all plugins.
type MetricsSummary struct {
	TotalPlugins             int64 `json:"totalPlugins"`
	HealthyPlugins           int64 `json:"healthyPlugins"`
	DegradedPlugins          int64 `json:"degradedPlugins"`
	UnhealthyPlugins         int64 `json:"unhealthyPlugins"`
	TotalRequests            int64 `json:"totalRequests"`
	TotalSuccess             int64 `json:"totalSuccess"`
	TotalFailed              int64 `json:"totalFailed"`
	TotalRateLimitRejections int64 `json:"totalRateLimitRejections"`
}

func metrics(ctx context.Context, d *db.DB) (*Metrics, error) {
	var b pgx.Batch
	var all []Plugin
	var methods []struct {
		Plugin   uuid.UUID `db:"plugin_id"`
		Method   string    `db:"method"`
		Requests int64     `db:"requests"`
		Failed   int64     `db:"failed"`
		Refused  int64     `db:"refused"`
		TotalMs  float64   `db:"total_ms"`
	}
	var codes []struct {
		Plugin uuid.UUID `db:"plugin_id"`
		Code   string    `db:"code"`
		Count  int64     `db:"count"`
	}
	db.All(&b, &all, "select "+columns+" from plugin p where p.tenant_id = app.tenant() order by p.name")
	db.All(&b, &methods, "select plugin_id, method, requests, failed, refused, total_ms from plugin_method where tenant_id = app.tenant()")
	db.All(&b, &codes, "select plugin_id, code, count(*) as count from plugin_failure where tenant_id = app.tenant() and occurred_at > now() - $1::interval group by plugin_id, code", keptFor)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	out := &Metrics{Plugins: []OneMetrics{}, UpdatedAt: time.Now().UTC()}
	sum := &out.Summary
	for _, p := range all {
		m := OneMetrics{PluginID: p.ID, PluginName: p.Name, HealthStatus: p.HealthStatus, ByMethod: map[string]MethodMetrics{}, FailureCounts: map[string]int64{},
			LastFailure: p.LastFailureAt, LastSuccess: p.LastSuccessAt}
		took := 0.0
		for _, x := range methods {
			if x.Plugin != p.ID {
				continue
			}
			m.ByMethod[x.Method] = MethodMetrics{x.Method, x.Requests, x.Requests - x.Failed, x.Failed, x.TotalMs / float64(max(x.Requests, 1))}
			m.RequestsTotal += x.Requests
			m.RequestsFailed += x.Failed
			m.RateLimitRejections += x.Refused
			took += x.TotalMs
		}
		m.RequestsSuccess = m.RequestsTotal - m.RequestsFailed
		if m.RequestsTotal > 0 {
			m.AvgDurationMs, m.ErrorRatePct = took/float64(m.RequestsTotal), 100*float64(m.RequestsFailed)/float64(m.RequestsTotal)
		}
		for _, c := range codes {
			if c.Plugin == p.ID {
				m.FailureCounts[c.Code] = c.Count
			}
		}
		sum.count(&m)
		out.Plugins = append(out.Plugins, m)
	}
	return out, nil
}

// count adds a plugin.
func (s *MetricsSummary) count(m *OneMetrics) {
	s.TotalPlugins++
	switch m.HealthStatus {
	case "healthy":
		s.HealthyPlugins++
	case "degraded":
		s.DegradedPlugins++
	case "unhealthy":
		s.UnhealthyPlugins++
	}
	s.TotalRequests += m.RequestsTotal
	s.TotalSuccess += m.RequestsSuccess
	s.TotalFailed += m.RequestsFailed
	s.TotalRateLimitRejections += m.RateLimitRejections
}
