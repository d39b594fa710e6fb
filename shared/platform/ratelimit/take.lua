-- GCRA: a bucket is one number, the time at which it will be full again (tat).
-- KEYS: [generation,] buckets. ARGV: proposed generation ('' = no such key), clock in µs (0 = the server's), then
-- interval (µs a token takes) and burst of each bucket.
-- Answers {allowed, remaining, µs until a token, µs to wait, generation, bucket}, of the bucket with the fewest
-- tokens left, from 0. A token is taken from every bucket or from none.
local buckets = #ARGV / 2 - 1
local first = #KEYS - buckets -- of the buckets, less one
local values = redis.call('mget', unpack(KEYS))
local generation = ''
if first == 1 then
  generation = values[1]
  if not generation then
    generation = ARGV[1]
    redis.call('set', KEYS[1], generation)
  end
end
if buckets == 0 then
  return {1, 0, 0, 0, generation, 0}
end

local now = tonumber(ARGV[2])
if now == 0 then
  local t = redis.call('time')
  now = t[1] * 1000000 + t[2]
end

local filled, least, at, spareOf, intervalOf = {}, nil, 0, 0, 0
local wait, slowest = 0, 0
for i = 1, buckets do
  local interval, burst = tonumber(ARGV[2 * i + 1]), ARGV[2 * i + 2]
  local tat = tonumber(values[first + i] or now)
  if not tat or tat < now then
    tat = now
  end
  filled[i] = tat + interval
  local spare = now + burst * interval - filled[i] -- µs worth of tokens left after this one
  -- A number of this size is exact to a quarter of a microsecond.
  if spare < -0.3 and -spare > wait then
    wait, slowest = -spare, i
  end
  local remaining = math.floor(spare / interval + 0.0001)
  if not least or remaining < least then
    least, at, spareOf, intervalOf = remaining, i, spare, interval
  end
end
if slowest > 0 then
  wait = math.ceil(wait)
  return {0, 0, wait, wait, generation, slowest - 1}
end

for i = 1, buckets do
  -- Left alone, Lua would write such a number with 14 digits only.
  redis.call('set', KEYS[first + i], string.format('%.2f', filled[i]), 'px', math.ceil((filled[i] - now) / 1000))
end
if least > 0 then
  return {1, least, 0, 0, generation, at - 1}
end
return {1, 0, math.ceil(intervalOf - spareOf), 0, generation, at - 1}
