package telemetry

import (
	"context"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Observability is the configuration that web clients fetch at start.
type Observability struct {
	Enabled     bool    `json:"enabled" doc:"Whether the operator has configured a collector"`
	ProxyPath   string  `json:"proxyPath" doc:"Prefix of /v1/traces and /v1/metrics; like serviceName, empty if there is no collector"`
	SampleRatio float64 `json:"sampleRatio" doc:"Sample ratio of traces, 0 to 1; 0 if there is no collector"`
	ServiceName string  `json:"serviceName"`
}

const (
	base      = "/api/v1/observability"
	proxyPath = base + "/otlp"

	maxBody = 4 << 20 // bytes
)

// Input holds a client's measurements.
type Input struct {
	ContentType     string `header:"Content-Type" hidden:"true"`
	ContentEncoding string `header:"Content-Encoding" hidden:"true"`
	RawBody         []byte `contentType:"application/x-protobuf"`
}

// Routes registers the configuration for clients, and the endpoints they send to.
func Routes(a *httpapi.API, d *db.DB, c Config) {
	told := Observability{}
	if c.Endpoint != "" {
		told = Observability{Enabled: true, ProxyPath: proxyPath, SampleRatio: c.SampleRatio, ServiceName: c.ServiceName}
	}
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: base + "/config", ID: "getObservability",
		Summary: "Get the configuration of traces and metrics for web clients", Tag: "Health", Permission: httpapi.Public},
		func(context.Context, *struct{}) (*Observability, error) { out := told; return &out, nil })
	f := newForwarder(c)
	for _, what := range []struct{ to, id, name string }{{"v1/traces", "sendTraces", "traces"}, {"v1/metrics", "sendMetrics", "metrics"}} {
		httpapi.Register(a, httpapi.Op{Method: "POST", Path: proxyPath + "/" + what.to, ID: what.id, Status: 200, Tag: "Health", Permission: httpapi.SignedIn, MaxBody: maxBody,
			Summary: "Send " + what.name + " to the operator's collector (OTLP, as protobuf or JSON)"},
			func(ctx context.Context, in *Input) (*httpapi.None, error) {
				if err := d.Enter(ctx); err != nil { // permission first
					return nil, err
				}
				return nil, f.send(ctx, what.to, in)
			})
	}
}
