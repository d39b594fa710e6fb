package events

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// tailScript returns the id of the newest entry. An empty stream gets a marker first, so that every
// listener starts from an id that can be proved to be in the stream later.
const tailScript = `
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
if #newest > 0 then return newest[1][1] end
local id = redis.call('XADD', KEYS[1], '*', 'e', '')
redis.call('EXPIRE', KEYS[1], 604800)
return id`

// Tail returns the id of the newest entry of the stream at key, which it opens when it is empty.
func Tail(ctx context.Context, rdb redis.UniversalClient, key string) (ID, error) {
	id, err := rdb.Eval(ctx, tailScript, []string{key}).Text()
	if err != nil {
		return ID{}, fmt.Errorf("newest entry of %s: %w", key, err)
	}
	return ParseID(id)
}

// Range returns at most limit entries of the stream at key, oldest first, with from <= id <= to.
// A nil to means the newest. An entry of a form that is not known, as another version may write, tells nothing: it has
// an id alone.
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
