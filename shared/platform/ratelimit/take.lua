-- GCRA: a bucket is one number, the time at which it will be full again (tat).
-- KEYS: bucket [, generation]. ARGV: interval (µs a token takes, 0 = no limit),
-- burst, proposed generation, clock in µs (0 = the server's).
-- Answers {allowed, remaining, µs until a token, µs to wait, generation}.
local tat, generation
if #KEYS == 2 then
  local both = redis.call('mget', KEYS[1], KEYS[2])
  tat, generation = both[1], both[2]
  if not generation then
    generation = ARGV[3]
    redis.call('set', KEYS[2], generation)
  end
else
  tat, generation = redis.call('get', KEYS[1]), ''
end

local interval = tonumber(ARGV[1])
if interval == 0 then
  return {1, 0, 0, 0, generation}
end

local now = tonumber(ARGV[4])
if now == 0 then
  local t = redis.call('time')
  now = t[1] * 1000000 + t[2]
end
tat = tonumber(tat or now)
if not tat or tat < now then
  tat = now
end

local filled = tat + interval
local spare = now + ARGV[2] * interval - filled -- µs worth of tokens left after this one
-- A number of this size is exact to a quarter of a microsecond.
if spare < -0.3 then
  local wait = math.ceil(-spare)
  return {0, 0, wait, wait, generation}
end

-- Left alone, Lua would write such a number with 14 digits only.
redis.call('set', KEYS[1], string.format('%.2f', filled), 'px', math.ceil((filled - now) / 1000))
local remaining = math.floor(spare / interval + 0.0001)
if remaining > 0 then
  return {1, remaining, 0, 0, generation}
end
return {1, 0, math.ceil(interval - spare), 0, generation}
