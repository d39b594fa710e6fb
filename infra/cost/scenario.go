package main

import "strings"

const million, month = 1e6, 730.0 // page views; hours

// idle is the cost of a month without users. everyMinute says that the scheduler queries the database every minute,
// which keeps it awake. Otherwise the database is only awake for each hour's round and the pause after it.
func (m *model) idle(everyMinute bool) (c cost) {
	switch {
	case m.number("DatabaseMin") == 0 && everyMinute:
		c.add(m, "Postgres", "auroraACUHour", m.assumed("idleAwakeHours")*m.assumed("idleACU"))
	case m.number("DatabaseMin") == 0:
		c.add(m, "Postgres", "auroraACUHour", month*m.assumed("awakeMinutesPerRound")/60*m.assumed("idleACU"))
	default:
		instances := 1.0
		if m.yes("DatabaseStandby") {
			instances = 2
		}
		c.add(m, "Postgres", "auroraACUHour", month*m.number("DatabaseMin")*instances)
	}
	if m.yes("DatabaseProxy") {
		c.add(m, "Postgres", "proxyACUHour", month*m.assumed("proxyACU"))
	}
	c.add(m, "Postgres", "auroraGBMonth", m.assumed("databaseGB"))
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
	c.add(m, "Other", "secretMonth", m.assumed("secrets"))
	c.add(m, "Other", "alarmMonth", m.alarms)
	c.add(m, "Other", "firewallMonth", 1)
	round, size := use{Trips: m.assumed("roundTrips"), CPU: m.assumed("roundCpuMs")}, m.assumed("schedulerMB")
	c.invoke(m, month*60, m.milliseconds(round, size, false), size)
	c.add(m, "SQS", "sqsRequest", m.assumed("queues")*m.assumed("pollsPerQueue"))
	return c
}

// original is the use of one original page, with the page size of the bars.
func (m *model) original() use {
	u := m.measured("original")
	u.Bytes = m.assumed("pageKB") * 1000
	return u
}

// cold is the cost of a million original pages that no cache has.
func (m *model) cold() (c cost) {
	u, size := m.original(), m.number("MediaMemory")
	c.invoke(m, million, m.milliseconds(u, size, true), size)
	c.store(m, u, million)
	c.cdn(m, million)
	return c
}

// coldRender is the cost of a million resized pages that are requested for the first time.
func (m *model) coldRender() (c cost) {
	u, size := m.measured("render"), m.number("RenderMemory")
	c.invoke(m, million, m.milliseconds(u, size, true), size)
	c.store(m, u, million)
	c.cdn(m, million)
	return c
}

// redirected is the cost of a million pages that the CDN has cached. Each is requested from the function first, which
// redirects to the CDN.
func (m *model) redirected() cost { return m.addressed(million) }

// warm is the cost of a million pages that the CDN has cached, requested at URLs that were issued for a whole book at
// once. None of them reaches a function or the bucket: media is only asked for the URLs.
func (m *model) warm() cost { return m.addressed(million / m.assumed("pagesPerAddress")) }

// addressed is the cost of a million pages that the CDN has cached, if media is asked this often for their URLs.
func (m *model) addressed(asked float64) (c cost) {
	u, size := m.measured("original"), m.number("MediaMemory")
	u.Gets, u.Bytes = 0, 0 // the object is not read
	c.invoke(m, asked, m.milliseconds(u, size, false), size)
	c.cdn(m, million+asked)
	return c
}

func (c *cost) cdn(m *model, requests float64) {
	c.add(m, "CDN", "cdnRequest", requests)
	c.add(m, "CDN", "cdnFunction", requests)
	c.add(m, "CDN", "firewallRequest", requests)
}

// egress is the additional cost of the bytes of a million page views.
func (m *model) egress() (c cost) {
	c.add(m, "CDN", "cdnGB", million*m.assumed("pageKB")/1e6)
	return c
}

// scan is the cost of the first scan of 100,000 books with covers.
func (m *model) scan() (c cost) {
	const books = 1e5
	u, size := m.measured("book"), m.number("WorkerMemory")
	u.Lists = max(u.Lists, 1.0/1000)
	share := min(1, size/1024*m.assumed("cpuPerGB"))
	// Files that are read at once share the waiting time, but not the CPU time.
	waits := ((u.Gets+u.Puts)*m.assumed("s3FirstByteMs") + u.Trips*m.assumed("databaseTripMs")) / m.assumed("workerParallel")
	c.add(m, "Lambda", "lambdaGBSecond", books*max(u.CPU/share, waits)/1000*size/1024)
	c.add(m, "Lambda", "lambdaRequest", books/m.assumed("booksPerMessage"))
	c.store(m, u, books)
	c.add(m, "SQS", "sqsRequest", books/m.assumed("booksPerMessage")*m.assumed("sqsRequestsPerMessage"))
	c.add(m, "Postgres", "auroraACUHour", m.assumed("awakeMinutesPerScan")/60*m.assumed("scanACU"))
	return c
}

// readers is the cost of a month with 1,000 readers, including the idle month.
func (m *model) readers() (c cost) {
	const readers = 1000
	c = m.idle(true)
	if m.number("DatabaseMin") == 0 {
		c.add(m, "Postgres", "auroraACUHour", m.assumed("activeHours")*(m.assumed("activeACU")-m.assumed("idleACU")))
	}
	list, api := m.measured("list"), m.number("ApiMemory")
	requests := readers * m.assumed("requestsPerReader")
	c.invoke(m, requests, m.milliseconds(list, api, false), api)
	c.add(m, "Gateway", "httpAPI", requests)
	pages := readers * m.assumed("pagesPerReader")
	missed := pages * (1 - m.assumed("cdnHitShare"))
	u, media := m.original(), m.number("MediaMemory")
	c.invoke(m, missed, m.milliseconds(u, media, true), media)
	c.store(m, u, missed)
	c.cdn(m, requests+pages)
	c.add(m, "CDN", "cdnGB", pages*m.assumed("pageKB")/1e6)
	c.add(m, "Relay", "balancerUnitMonth", readers*m.assumed("streamsPerReader")/m.assumed("streamsPerUnit"))
	c.add(m, "Other", "logGB", (requests+missed)*m.assumed("logBytesPerRequest")/1e9)
	return c
}

// breakdown formats the items of a cost for a table cell.
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
