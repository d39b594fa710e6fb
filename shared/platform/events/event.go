package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Topic is one of the three streams that a client can open.
type Topic string

// Topics, named like the first path element of their streams.
const (
	Entities Topic = "events"
	Tasks    Topic = "tasks"
	Scans    Topic = "scans"
)

// Topics lists every topic. Its order is part of the publishing script.
var Topics = [...]Topic{Entities, Tasks, Scans}

// SeesAll is held, besides permissions, by listeners who see all series. Events of tasks and scans require it, because
// they may name any file.
const SeesAll = "SeesAll"

// maxData limits the encoded payload of one event, in bytes.
const maxData = 32 << 10

// Event is one message for the listeners of a topic.
type Event struct {
	Topic      Topic
	Kind       string // the SSE "event:" line, lower case letters, digits and underscores
	Data       any    // encoded once as JSON; a json.RawMessage is used unchanged
	Permission string // required of listeners; empty means every listener
	UserID     string // when set, only this user's connections receive it
	Elsewhere  bool   // a file was changed, moved or removed: processes must drop their cached books
}

// Message is an event as the relay reads it from a channel or a stream.
type Message struct {
	ID         ID
	Kind       string // empty for the marker that starts a stream, which is not delivered
	Permission string
	UserID     string
	Data       string // one line of JSON
}

// Key returns the name of the Redis stream of a tenant's topic, which is also the channel that announces its entries.
func Key(tenant uuid.UUID, topic Topic) string {
	return "lb:{" + tenant.String() + "}:stream:" + string(topic)
}

// GenerationKey returns the name of the string with a tenant's access generation, which is also the channel that
// announces changes.
func GenerationKey(tenant uuid.UUID) string {
	return "lb:{" + tenant.String() + "}:gen"
}

// BooksKey returns the name of the string that changes with each event that is Elsewhere.
func BooksKey(tenant uuid.UUID) string { return GenerationKey(tenant) + ":books" }

// Publish sends a tenant's events after commit. It handles its failures itself.
type Publish func(ctx context.Context, tenant uuid.UUID, e ...Event)

// AccessChanged is called after commit when permissions of the tenant, or what its caches depend on, have changed. It
// handles its failures itself.
type AccessChanged func(ctx context.Context, tenant uuid.UUID)

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
		return "", fmt.Errorf("%s: the data has %d bytes, the limit is %d", e.Kind, len(line), maxData)
	}
	return e.Kind + "\t" + e.Permission + "\t" + user + "\t" + string(line), nil
}

// line returns the data as JSON without line breaks, which would end an SSE data line.
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

// DecodeMessage decodes a message of a topic's channel: the entry's id and its value.
func DecodeMessage(payload string) (Message, error) {
	id, value, ok := strings.Cut(payload, "\t")
	if !ok {
		return Message{}, errors.New("event without an id")
	}
	return decodeEntry(id, value)
}

// decodeEntry decodes an entry of a topic's stream from its id and the value of its field.
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
		return Message{}, fmt.Errorf("event %s has an unknown format", parsed)
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
