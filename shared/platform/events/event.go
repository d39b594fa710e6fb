package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Topic names one of the three streams a client can open.
type Topic string

// The topics, named as the first path element of their streams.
const (
	Entities Topic = "events"
	Tasks    Topic = "tasks"
	Scans    Topic = "scans"
)

// Topics lists every topic; its order is part of the publishing script.
var Topics = [...]Topic{Entities, Tasks, Scans}

// SeesAll is what, besides permissions, those listeners hold from whom no series is hidden: what tasks and scans tell
// may name any file.
const SeesAll = "SeesAll"

// maxData is the largest encoded payload of one event, in bytes.
const maxData = 32 << 10

// Event is one message for the listeners of a topic.
type Event struct {
	Topic      Topic
	Kind       string // the SSE "event:" line, lower case letters, digits and underscores
	Data       any    // encoded once as JSON; a json.RawMessage is taken as it is
	Permission string // what a listener must hold to receive it; empty means every listener
	UserID     string // when set, only this user's connections receive it
	Elsewhere  bool   // a file that was read before is another one, in another place or gone: what processes remember of books ends
}

// Message is an event as the relay reads it from a channel or a stream.
type Message struct {
	ID         ID
	Kind       string // empty for the marker that opens a stream: nothing to deliver
	Permission string
	UserID     string
	Data       string // one line of JSON
}

// Key names the Redis stream of a tenant's topic and the channel that announces its entries.
func Key(tenant uuid.UUID, topic Topic) string {
	return "lb:{" + tenant.String() + "}:stream:" + string(topic)
}

// GenerationKey names the string that holds a tenant's access generation and the channel that
// announces its changes.
func GenerationKey(tenant uuid.UUID) string {
	return "lb:{" + tenant.String() + "}:gen"
}

// BooksKey names the string that changes with an event of a book whose file is Elsewhere, or of a library that is.
func BooksKey(tenant uuid.UUID) string { return GenerationKey(tenant) + ":books" }

// encode renders the event as kind, permission, user and data, separated by tabs.
func (e Event) encode() (string, error) {
	if !isName(e.Kind) || e.Kind != strings.ToLower(e.Kind) {
		return "", fmt.Errorf("event kind %q: only lower case letters, digits and underscores", e.Kind)
	}
	if e.Permission != "" && !isName(e.Permission) {
		return "", fmt.Errorf("%s: permission %q: only letters, digits and underscores", e.Kind, e.Permission)
	}
	user := ""
	if e.UserID != "" {
		id, err := uuid.Parse(e.UserID)
		if err != nil {
			return "", fmt.Errorf("%s: user id %q is not a UUID", e.Kind, e.UserID)
		}
		user = id.String()
	}
	line, err := e.line()
	if err != nil {
		return "", err
	}
	if len(line) > maxData {
		return "", fmt.Errorf("%s: data has %d bytes, the limit is %d", e.Kind, len(line), maxData)
	}
	return e.Kind + "\t" + e.Permission + "\t" + user + "\t" + string(line), nil
}

// line is the data as JSON without line breaks, which would end an SSE data line.
func (e Event) line() ([]byte, error) {
	raw, ok := e.Data.(json.RawMessage)
	if !ok {
		line, err := json.Marshal(e.Data)
		if err != nil {
			return nil, fmt.Errorf("%s: encode data: %w", e.Kind, err)
		}
		return line, nil
	}
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return nil, fmt.Errorf("%s: data is not JSON: %w", e.Kind, err)
	}
	return line.Bytes(), nil
}

// DecodeMessage reads what was published on a topic's channel: the entry's id and its value.
func DecodeMessage(payload string) (Message, error) {
	id, value, ok := strings.Cut(payload, "\t")
	if !ok {
		return Message{}, errors.New("event without an id")
	}
	return decodeEntry(id, value)
}

// decodeEntry reads an entry of a topic's stream from its id and the value of its field.
func decodeEntry(id, value string) (Message, error) {
	parsed, err := ParseID(id)
	if err != nil {
		return Message{}, err
	}
	if value == "" {
		return Message{ID: parsed}, nil
	}
	part := strings.SplitN(value, "\t", 4)
	if len(part) != 4 || !isName(part[0]) {
		return Message{}, fmt.Errorf("event %s has an unknown form", parsed)
	}
	return Message{ID: parsed, Kind: part[0], Permission: part[1], UserID: part[2], Data: part[3]}, nil
}

func isName(s string) bool {
	for _, c := range []byte(s) {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}
