package main

import (
	"math"
	"os"
	"strings"
	"testing"
)

// example is a model whose costs can be worked out by hand.
func example() *model {
	return &model{
		prices: map[string]price{
			"lambdaRequest": {0.20, 1e6}, "lambdaGBSecond": {0.00001, 1}, "s3Get": {0.4, 1e6}, "s3Put": {5, 1e6}, "sqsRequest": {0.4, 1e6},
			"cdnRequest": {1, 1e6}, "cdnFunction": {0.1, 1e6}, "firewallRequest": {0.6, 1e6}, "auroraACUHour": {0.12, 1},
		},
		assumptions: map[string]figure{
			"s3FirstByteMs": {Value: 50}, "databaseTripMs": {Value: 2}, "redisTripMs": {Value: 1}, "egressMBPerSecond": {Value: 100},
			"coldStartShare": {Value: 0.01}, "coldStartMs": {Value: 200}, "cpuPerGB": {Value: 0.5}, "workerParallel": {Value: 10},
			"booksPerMessage": {Value: 50}, "sqsRequestsPerMessage": {Value: 3}, "awakeMinutesPerScan": {Value: 30}, "scanACU": {Value: 2}, "pageKB": {Value: 500},
			"pagesPerAddress": {Value: 100},
		},
		counters: map[string]use{
			"original": {Gets: 1, CPU: 1, Bytes: 900_000, Trips: 1},
			"book":     {Gets: 3, Puts: 1, CPU: 20, Trips: 1},
		},
		size: map[string]string{"MediaMemory": "512", "WorkerMemory": "2048"},
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s is %.9f, want %.9f", what, got, want)
	}
}

func TestArithmetic(t *testing.T) {
	t.Parallel()
	m := example()
	// A quarter of a processor: 4 ms; S3 50, Postgres 2, Redis 1, a hundredth of a cold start 2, half a MB 5.
	near(t, "a page", m.milliseconds(m.original(), 512, true), 64)
	cold := m.cold()
	near(t, "Lambda of cold pages", cold.of("Lambda"), 0.20+1e6*0.064*0.5*0.00001)
	near(t, "S3 of cold pages", cold.of("S3"), 0.40)
	near(t, "all of cold pages", cold.of(), 0.20+0.32+0.40+1.7)
	warm := m.warm()
	// Each 10,000 addresses: a processor's 4 ms, Postgres 2, Redis 1, a hundredth of a cold start 2.
	near(t, "Lambda of warm pages", warm.of("Lambda"), 1e4*0.20/1e6+1e4*0.009*0.5*0.00001)
	near(t, "CDN of warm pages", warm.of("CDN"), 1.01*1.7)
	// 202 ms of waiting shared by ten is 20.2 a book, more than the processor's 20 (two GB are a whole processor).
	scan := m.scan()
	near(t, "Lambda of a scan", scan.of("Lambda"), 1e5*0.0202*2*0.00001+2000*0.2/1e6)
	near(t, "S3 of a scan", scan.of("S3"), 3e5*0.4/1e6+(1e5+100)*5/1e6)
	near(t, "SQS of a scan", scan.of("SQS"), 6000*0.4/1e6)
	near(t, "Postgres of a scan", scan.of("Postgres"), 0.12)
	m.counters["book"] = use{Gets: 3, Puts: 1, CPU: 40, Trips: 1}
	scan = m.scan()
	near(t, "Lambda of a scan that computes", scan.of("Lambda"), 1e5*0.040*2*0.00001+2000*0.2/1e6)
}

// A bar is missed when the figure is above it, and only then.
func TestBarsJudge(t *testing.T) {
	t.Parallel()
	m := example()
	if b := m.bars()[0]; b.is > b.most {
		t.Errorf("%+v", b)
	}
	m.assumptions["s3FirstByteMs"] = figure{Value: 500}
	if b := m.bars()[0]; b.is <= b.most {
		t.Errorf("half a second at S3 is within the bar: %+v", b)
	}
}

func TestGuideHasTheTable(t *testing.T) {
	t.Parallel()
	text, _, err := table("../..")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/cost.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), begin+text+end) {
		t.Error("docs/cost.md is not what the program computes: go run ./infra/cost -write")
	}
}
