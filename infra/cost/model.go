package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

type price struct {
	Dollars float64 `json:"dollars"`
	Per     float64 `json:"per"`
}

type figure struct {
	Value float64 `json:"value"`
	Why   string  `json:"why"`
}

// use is what one operation consumes, as go run ./bench cost measures it.
type use struct {
	Gets, Puts, Lists, Bytes, Trips, DatabaseMs float64
	CPU                                         float64 `json:"cpuMs"`
}

// model holds all inputs of the computation.
type model struct {
	prices      map[string]price
	assumptions map[string]figure
	counters    map[string]use
	date        string // of the counters
	source      string // of the prices
	alarms      float64
	size        map[string]string // the parameters of one size
}

func load(root, size string) (*model, error) {
	var p struct {
		Source, Date string
		Prices       map[string]price
	}
	var c struct {
		Date, Command string
		Measured      map[string]use
	}
	m := &model{size: map[string]string{}}
	for file, into := range map[string]any{"prices.json": &p, "assumed.json": &m.assumptions, "counters.json": &c} {
		raw, err := os.ReadFile(filepath.Join(root, "infra", "cost", file))
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return nil, fmt.Errorf("infra/cost/%s: %w", file, err)
		}
	}
	m.prices, m.counters = p.Prices, c.Measured
	m.source, m.date = p.Source+" ("+p.Date+")", fmt.Sprintf("`%s` of %s", c.Command, c.Date)
	alarms, err := os.ReadFile(filepath.Join(root, "infra", "alarm.yaml"))
	if err != nil {
		return nil, err
	}
	m.alarms = float64(strings.Count(string(alarms), "Type: AWS::CloudWatch::Alarm\n"))
	parameters, err := os.ReadFile(filepath.Join(root, "infra", "parameters", size))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(parameters)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && name[0] != '#' {
			m.size[name] = value
		}
	}
	return m, nil
}

// number returns a parameter of the size. A missing one is a mistake in the files, which the first run finds.
func (m *model) number(name string) float64 {
	v, err := strconv.ParseFloat(m.size[name], 64)
	if err != nil {
		panic("infra/parameters: " + name + " is not a number")
	}
	return v
}

func (m *model) yes(name string) bool { return m.size[name] == "true" }

func (m *model) assumed(name string) float64 {
	f, ok := m.assumptions[name]
	if !ok {
		panic("infra/cost/assumed.json lacks " + name)
	}
	return f.Value
}

func (m *model) measured(name string) use {
	u, ok := m.counters[name]
	if !ok {
		panic("infra/cost/counters.json lacks " + name + ": go run ./bench cost")
	}
	return u
}

// cost is dollars by item.
type cost struct {
	names   []string
	dollars map[string]float64
}

// add adds the price of n units.
func (c *cost) add(m *model, name, price string, n float64) {
	p, ok := m.prices[price]
	if !ok {
		panic("infra/cost/prices.json lacks " + price)
	}
	if c.dollars == nil {
		c.dollars = map[string]float64{}
	}
	if _, there := c.dollars[name]; !there {
		c.names = append(c.names, name)
	}
	c.dollars[name] += n * p.Dollars / p.Per
}

// of returns the sum of the named items, or of all items without names.
func (c *cost) of(names ...string) (sum float64) {
	if len(names) == 0 {
		names = c.names
	}
	for _, n := range names {
		sum += c.dollars[n]
	}
	return sum
}

// milliseconds returns how long a function with this memory is busy with one operation: CPU time on its share of a
// processor, plus waiting.
func (m *model) milliseconds(u use, megabytes float64, streamed bool) float64 {
	share := min(1, megabytes/1024*m.assumed("cpuPerGB"))
	ms := u.CPU/share + (u.Gets+u.Puts)*m.assumed("s3FirstByteMs") + u.Trips*m.assumed("databaseTripMs") +
		m.assumed("redisTripMs") + m.assumed("coldStartShare")*m.assumed("coldStartMs")
	if streamed {
		ms += u.Bytes / 1e6 / m.assumed("egressMBPerSecond") * 1000
	}
	return ms
}

// invoke adds n invocations of a function.
func (c *cost) invoke(m *model, n, ms, megabytes float64) {
	c.add(m, "Lambda", "lambdaRequest", n)
	c.add(m, "Lambda", "lambdaGBSecond", n*ms/1000*megabytes/1024)
}

// store adds the S3 requests of n operations.
func (c *cost) store(m *model, u use, n float64) {
	c.add(m, "S3", "s3Get", n*u.Gets)
	c.add(m, "S3", "s3Put", n*(u.Puts+u.Lists))
}
