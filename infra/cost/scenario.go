package main

import "strings"

const million, month = 1e6, 730.0 // page views; hours

// idle is a month in which nobody does anything. schedule is whether the database is asked every minute, which keeps it
// awake; without it only the pause after each hour's round counts.
func (m *model) idle(everyMinute bool) (c cost) {
	switch {
	case m.number("DatabaseMin") == 0 && everyMinute:
		c.add(m, "Postgres", "auroraACUHour", m.a("idleAwakeHours")*m.a("idleACU"))
	case m.number("DatabaseMin") == 0:
		c.add(m, "Postgres", "auroraACUHour", month*0.1*m.a("idleACU")) // six minutes of each hour: a round, and the pause
	default:
		instances := 1.0
		if m.yes("DatabaseStandby") {
			instances = 2
		}
		c.add(m, "Postgres", "auroraACUHour", month*m.number("DatabaseMin")*instances)
	}
	if m.yes("DatabaseProxy") {
		c.add(m, "Postgres", "proxyACUHour", month*8)
	}
	c.add(m, "Postgres", "auroraGBMonth", m.a("databaseGB"))
	c.add(m, "Redis", "cacheMonth", 1)
	relays := m.number("RelayMin")
	c.add(m, "Relay", "fargateCPUMonth", relays*m.number("RelayCpu")/1024)
	c.add(m, "Relay", "fargateGBMonth", relays*m.number("RelayMemory")/1024)
	c.add(m, "Relay", "addressMonth", relays)
	c.add(m, "Relay", "balancerMonth", 1)
	zones := 1.0
	if m.yes("EndpointsInBothZones") {
		zones = 2
	}
	c.add(m, "Endpoint", "endpointMonth", zones)
	c.add(m, "Other", "secretMonth", m.a("secrets"))
	c.add(m, "Other", "alarmMonth", max(0, m.alarms-m.a("freeAlarms")))
	c.add(m, "Other", "firewallMonth", 1)
	c.invoke(m, month*60, m.milliseconds(use{Trips: 3, CPU: 2}, 256, false), 256) // the scheduler
	c.add(m, "SQS", "sqsRequest", 3*0.65e6)                                       // what Lambda polls three queues with
	return c
}

// original is what an original page takes, at the size of a page that the bars speak of.
func (m *model) original() use {
	u := m.u("original")
	u.Bytes = m.a("pageKB") * 1000
	return u
}

// cold is a million original pages that no cache has.
func (m *model) cold() (c cost) {
	u, size := m.original(), m.number("MediaMemory")
	c.invoke(m, million, m.milliseconds(u, size, true), size)
	c.store(m, u, million)
	c.cdn(m, million)
	return c
}

// coldRender is a million pages in another size that nobody has asked for before.
func (m *model) coldRender() (c cost) {
	u, size := m.u("render"), m.number("RenderMemory")
	c.invoke(m, million, m.milliseconds(u, size, true), size)
	c.store(m, u, million)
	c.cdn(m, million)
	return c
}

// redirected is a million pages that the CDN has, each asked for at the function first, which answers with an address.
func (m *model) redirected() (c cost) {
	u, size := m.u("original"), m.number("MediaMemory")
	u.Gets, u.Bytes = 0, 0 // the object is not read
	c.invoke(m, million, m.milliseconds(u, size, false), size)
	c.cdn(m, 2*million)
	return c
}

// warm is a million pages that the CDN has, asked for by addresses that were given for a whole book at once.
func (m *model) warm() (c cost) {
	c.add(m, "Lambda", "lambdaRequest", 0)
	c.add(m, "S3", "s3Get", 0)
	c.cdn(m, million)
	return c
}

func (c *cost) cdn(m *model, requests float64) {
	c.add(m, "CDN", "cdnRequest", requests)
	c.add(m, "CDN", "cdnFunction", requests)
	c.add(m, "CDN", "firewallRequest", requests)
}

// egress is what the bytes of a million page views cost besides.
func (m *model) egress() (c cost) {
	c.add(m, "CDN", "cdnGB", million*m.a("pageKB")/1e6)
	return c
}

// scan is the first scan of 100,000 books with covers.
func (m *model) scan() (c cost) {
	const books = 1e5
	u, size := m.u("book"), m.number("WorkerMemory")
	u.Lists = max(u.Lists, 1.0/1000)
	share := min(1, size/1024*m.a("cpuPerGB"))
	// Waiting is shared by the files that are read at once, the processor is not.
	waits := ((u.Gets+u.Puts)*m.a("s3FirstByteMs") + u.Trips*m.a("databaseTripMs")) / m.a("workerParallel")
	c.add(m, "Lambda", "lambdaGBSecond", books*max(u.CPU/share, waits)/1000*size/1024)
	c.add(m, "Lambda", "lambdaRequest", books/m.a("booksPerMessage"))
	c.store(m, u, books)
	c.add(m, "SQS", "sqsRequest", books/m.a("booksPerMessage")*m.a("sqsRequestsPerMessage"))
	c.add(m, "Postgres", "auroraACUHour", m.a("awakeMinutesPerScan")/60*m.a("scanACU"))
	return c
}

// readers is a month of 1,000 readers, on top of the idle month.
func (m *model) readers() (c cost) {
	const readers = 1000
	c = m.idle(true)
	if m.number("DatabaseMin") == 0 {
		c.add(m, "Postgres", "auroraACUHour", m.a("activeHours")*(m.a("activeACU")-m.a("idleACU")))
	}
	list, api := m.u("list"), m.number("ApiMemory")
	requests := readers * m.a("requestsPerReader")
	c.invoke(m, requests, m.milliseconds(list, api, false), api)
	c.add(m, "Gateway", "httpAPI", requests)
	pages := readers * m.a("pagesPerReader")
	missed := pages * (1 - m.a("cdnHitShare"))
	u, media := m.original(), m.number("MediaMemory")
	c.invoke(m, missed, m.milliseconds(u, media, true), media)
	c.store(m, u, missed)
	c.cdn(m, requests+pages)
	c.add(m, "CDN", "cdnGB", pages*m.a("pageKB")/1e6)
	c.add(m, "Relay", "balancerUnitMonth", readers*m.a("streamsPerReader")/3000) // 3,000 connections a unit
	c.add(m, "Other", "logGB", (requests+missed)*m.a("logBytesPerRequest")/1e9)
	return c
}

// breakdown is the largest parts of a cost, for a cell.
func (c *cost) breakdown() string {
	var parts []string
	for _, n := range c.names {
		if c.dollars[n] >= 0.005 {
			parts = append(parts, n+" "+dollars(c.dollars[n]))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
