package events

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// tailScript returns the id of the newest entry. It adds a marker to an empty stream, so that every listener starts
// from an id that can later be found in the stream.
const tailScript = `
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
if #newest > 0 then return newest[1][1] end
local id = redis.call('XADD', KEYS[1], '*', 'e', '')
redis.call('EXPIRE', KEYS[1], 604800)
return id`

// Tail returns the id of the newest entry of the stream at key. It adds a marker to an empty stream.
func Tail(ctx context.Context, rdb redis.UniversalClient, key string) (ID, error) {
	id, err := rdb.Eval(ctx, tailScript, []string{key}).Text()
	if err != nil {
		return ID{}, fmt.Errorf("newest entry of %s: %w", key, err)
	}
	return ParseID(id)
}

// Range returns at most limit entries of the stream at key, oldest first, with from <= id <= to. A nil to means the
// newest. An entry in an unknown format, which another version may write, is returned with its id only.
func Range(ctx context.Context, rdb redis.UniversalClient, key string, from ID, to *ID, limit int64) ([]Message, error) {
	end := "+"
	if to != nil {
		end = to.String()
	}
	entries, err := rdb.XRangeN(ctx, key, from.String(), end, limit).Result()
	if err != nil {
		return nil, fmt.Errorf("read %s from %s: %w", key, from, err)
	}
	messages := make([]Message, 0, len(entries))
	for _, entry := range entries {
		value, _ := entry.Values["e"].(string)
		message, err := decodeEntry(entry.ID, value)
		if err != nil {
			if message.ID, err = ParseID(entry.ID); err != nil {
				return nil, fmt.Errorf("read %s: %w", key, err)
			}
		}
		messages = append(messages, message)
	}
	return messages, nil
}
