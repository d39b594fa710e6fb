// Package pluginkit is a plugin for tests. The test's own program runs again as the plugin.
package pluginkit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// argument is the first argument of a test program that runs as the plugin.
const argument = "longbox-test-plugin"

// Main runs the plugin if the program was started as one, and then does not return. Call it in TestMain.
func Main() {
	if len(os.Args) > 1 && os.Args[1] == argument {
		serve(os.Args[2:])
		// os.Exit(0) ends the race detector first, which waits for a second.
		syscall.Exit(0)
	}
}

// Command returns the command that starts the plugin.
func Command(args ...string) (command string, all []string, err error) {
	command, err = os.Executable()
	return command, append([]string{argument}, args...), err
}

type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

type plugin struct {
	in    *bufio.Scanner
	init  json.RawMessage
	count int
	later message // served together with another request
}

// serve answers requests until shutdown. The first argument may select a failure at the start.
func serve(args []string) {
	if len(args) > 0 {
		switch args[0] {
		case "dies":
			fmt.Fprintln(os.Stderr, "no such library")
			os.Exit(3)
		case "mute":
			time.Sleep(time.Hour)
		case "lingers": // starts a process outside the plugin's group that holds its output open
			time.Sleep(time.Minute)
			os.Exit(0)
		}
	}
	p := &plugin{in: bufio.NewScanner(os.Stdin)}
	p.in.Buffer(nil, 8<<20)
	for p.in.Scan() {
		var m message
		if err := json.Unmarshal(p.in.Bytes(), &m); err != nil {
			panic(err)
		}
		if m.Method == "" {
			continue // a response that it does not wait for
		}
		result, failure := p.answer(m, args)
		if m.Method == "test/hang" || m.Method == "test/later" {
			continue // no answer
		}
		if failure != nil {
			say(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": failure})
		} else {
			say(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		}
		if m.Method == "shutdown" {
			return
		}
		if m.Method == "initialize" {
			p.early()
		}
	}
}

func say(m any) {
	line, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.Write(append(line, '\n')) // a closed pipe means that the plugin is being ended
}

type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

type object = map[string]any

// request holds the parameters of requests.
type request struct {
	Query, Title, ExternalID, Path, ISBN string
	Limit                                *int
}

// answer answers a request by its method, with the series 1 and 2 and the book 1.
func (p *plugin) answer(m message, args []string) (any, *failure) {
	p.count++
	var in request
	if len(m.Params) > 0 {
		if err := json.Unmarshal(m.Params, &in); err != nil {
			return nil, &failure{Code: -32602, Message: err.Error()}
		}
	}
	switch m.Method {
	case "initialize":
		p.init = m.Params
		return p.initialize(args), nil
	case "ping":
		return "pong", nil
	case "shutdown":
		return nil, nil
	case "metadata/series/search", "metadata/book/search":
		return search(&in)
	case "metadata/series/match", "metadata/book/match":
		if strings.Contains(in.Title, "nothing") {
			return object{"match": nil, "confidence": 0}, nil
		}
		return object{"match": hit("1", in.Title, 0.95), "confidence": 0.95}, nil
	case "metadata/series/get":
		return p.series(in.ExternalID)
	case "metadata/book/get":
		return bookOf(in.ExternalID)
	case "releases/poll":
		return p.poll(m.Params)
	}
	if out, f, ok := p.personal(m); ok {
		return out, f
	}
	return p.odd(m, in.Path)
}

// initialize returns the manifest that the arguments ask for.
func (p *plugin) initialize(args []string) any {
	if len(args) == 0 {
		return manifest()
	}
	switch m := manifest(); args[0] {
	case "newer":
		return object{"name": "test", "version": "1.0.0", "protocolVersion": "2.0", "capabilities": object{}}
	case "mistyped":
		m["author"] = object{"name": "npm"}
		return m
	case "strange":
		m["description"], m["author"] = "a\x00b", json.RawMessage(`"\ud83d"`)
		return m
	case "nothing":
		return object{}
	case "personal":
		return personalManifest(args[1:])
	case "releases":
		return p.releaseManifest()
	default:
		return m
	}
}

func search(in *request) (any, *failure) {
	switch {
	case strings.Contains(in.Query+in.ISBN, "nothing"):
		return object{"results": []any{}}, nil
	case strings.Contains(in.Query, "not there"):
		return nil, &failure{Code: -32002, Message: "not found"}
	case strings.Contains(in.Query, "slow down"):
		return nil, &failure{Code: -32001, Message: "too many requests", Data: object{"retryAfterSeconds": 7}}
	case in.ISBN == "9780306406157":
		return object{"results": []any{object{"externalId": "1", "title": "The Given Book"}}}, nil
	}
	out := []any{hit("1", in.Query, 0.9), hit("2", "Another", 0.4)}
	if in.Limit != nil {
		out = out[:min(*in.Limit, len(out))]
	}
	return object{"results": out, "nextCursor": "more"}, nil
}

func (p *plugin) series(id string) (any, *failure) {
	if s, ok := series[id]; ok {
		return s, nil
	}
	switch id {
	case "null":
		return nil, nil
	case "secret":
		key := os.Getenv("API_KEY") + p.configured("apiKey")
		return nil, &failure{Code: -32004, Message: "https://example.org/?key=" + key +
			"&again=" + url.QueryEscape(key) + " answers 500\x00" + strings.Repeat("!", 5000)}
	case "delivered":
		return nil, &failure{Code: -32004, Message: "environment: " + os.Getenv("API_KEY") + " initialize: " + p.credential("api-key")}
	case "mistyped":
		return json.RawMessage(`{"title": 1` + strings.Repeat("1", 5000) + `}`), nil
	}
	return nil, &failure{Code: -32002, Message: "no series has the id " + id}
}

func bookOf(id string) (any, *failure) {
	switch at, released := strings.CutPrefix(id, "released:"); {
	case id == "1":
		return book, nil
	case released:
		return object{"externalId": id, "releaseDate": at}, nil
	case id == "2":
		return object{"externalId": "2", "authors": []any{object{"name": "A. Author", "role": "author"}, object{"name": "W. Riter", "role": "writer"},
			object{"name": "C. Over", "role": "cover artist"}}, "translator": "T. Lator"}, nil
	}
	return nil, &failure{Code: -32002, Message: "no book has the id " + id}
}

// configured returns a text of the plugin's config.
func (p *plugin) configured(name string) string {
	var init struct{ Config map[string]any }
	_ = json.Unmarshal(p.init, &init) // empty without a config
	text, _ := init.Config[name].(string)
	return text
}

// credential returns a credential that the plugin got with initialize.
func (p *plugin) credential(name string) string {
	var init struct{ Credentials map[string]string }
	_ = json.Unmarshal(p.init, &init) // empty without credentials
	return init.Credentials[name]
}

func hit(id, title string, score float64) object {
	return object{"externalId": id, "title": title, "alternateTitles": []string{"Alias"}, "year": 1999, "relevanceScore": score,
		"preview": object{"status": "ended", "genres": []string{"Drama"}, "rating": 8.5, "description": "A story"}}
}

func manifest() object {
	return object{"name": "test", "displayName": "Test", "version": "1.2.3", "protocolVersion": "1.1", "description": "For tests", "author": "Longbox",
		"capabilities": object{"metadataProvider": []string{"series", "book"}, "externalIdSource": "test",
			"webLinks": object{"searchUrlTemplate": "https://example.org/search?q={title}", "seriesLinks": []any{object{"source": "plugin:test", "urlTemplate": "https://example.org/{config.region}/{externalId}"}}}},
		"requiredCredentials": []any{object{"key": "api_key", "label": "Key", "required": true, "sensitive": true, "type": "password"}},
		"searchURITemplate":   "https://example.org/?q=<title>"}
}

var series = map[string]object{
	"1": {"externalId": "1", "externalUrl": "https://example.org/1", "title": "The Given Title",
		"summary": "What it is about.", "status": "ended", "year": 1999,
		"totalVolumeCount": 12, "totalChapterCount": 99.5, "language": "ja", "ageRating": 16, "readingDirection": "rtl", "genres": []string{"Drama", "History"},
		"tags":    []string{"Samurai"},
		"authors": []any{object{"name": "A. Writer", "role": "writer"}, object{"name": "Nobody", "role": "cook"}}, "artists": []string{"B. Artist"},
		"publisher": "Tower", "rating": object{"score": 87.5, "voteCount": 1200, "source": "test"},
		"alternateTitles": []any{object{"title": "別名", "language": "ja", "titleType": "native"}, object{"title": "Alias"}},
		"externalLinks":   []any{object{"url": "https://example.org/1", "label": "Example"}, object{"url": "javascript:alert(1)", "label": "Evil"}},
		"externalIds":     []any{object{"source": "anilist", "externalId": "77"}}},
	"2": {"externalId": "2", "externalUrl": "https://example.org/2", "title": "Another", "status": "no such state",
		"year": -4, "language": "not a language!", "readingDirection": "up", "ageRating": 1000,
		"summary": "x\x00y", "genres": []string{"", "Fine"}, "coverUrl": "http://127.0.0.1/cover.jpg"},
}

var book = object{"externalId": "1", "externalUrl": "https://example.org/b/1", "title": "The Given Book", "subtitle": "A subtitle", "summary": "About a book.", "publisher": "Tower", "year": 2001,
	"isbn": "978-0-306-40615-7", "isbns": []string{"9780306406157"}, "edition": "2nd", "originalTitle": "原題", "originalYear": 1998, "language": "en", "authors": []any{object{"name": "C. Author", "role": "author"}},
	"volume": 3, "chapter": 7.5, "seriesPosition": 3, "seriesTotal": 12, "subjects": []string{"Swords"}, "genres": []string{"Drama"},
	"awards": []any{object{"name": "A Prize", "year": 2002, "won": true}},
	"covers": []any{object{"url": "http://127.0.0.1/small.jpg", "size": "small"}, object{"url": "http://127.0.0.1/large.jpg", "size": "large"}}}

// odd handles requests for special cases.
func (p *plugin) odd(m message, path string) (any, *failure) {
	switch m.Method {
	case "test/init":
		return p.init, nil
	case "test/environment":
		return os.Environ(), nil
	case "test/count":
		return p.count, nil
	case "test/flood":
		for i := range 1_000_000 {
			say(object{"jsonrpc": "2.0", "id": i, "method": "storage/get"})
		}
	case "test/child":
		command, args, err := Command("lingers")
		if err != nil {
			panic(err)
		}
		c := exec.Command(command, args...)
		c.Stdout, c.SysProcAttr = os.Stdout, &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			panic(err)
		}
		os.Exit(5)
	case "test/die":
		fmt.Fprintln(os.Stderr, "out of ideas")
		os.Exit(4)
	case "test/garbage":
		fmt.Println("Hello, I am a log line")
	case "test/long":
		fmt.Println(`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 2<<20) + `"}`)
	case "test/read":
		if _, err := os.ReadFile(path); err != nil {
			return nil, &failure{Code: -32603, Message: err.Error()}
		}
		return "read", nil
	case "test/write":
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			return nil, &failure{Code: -32603, Message: err.Error()}
		}
		return "written", nil
	case "test/later": // served with test/now
		p.later = m
	case "test/has":
		return p.later.Method != "", nil
	case "test/now":
		told, _, _ := p.personal(message{Method: "test/calls", Params: p.later.Params})
		say(object{"jsonrpc": "2.0", "id": p.later.ID, "result": told})
		return told, nil
	case "test/ask":
		return p.ask("storage/get", object{"key": "a"}), nil
	}
	return nil, &failure{Code: -32601, Message: "no such method"}
}
