-- GCRA: a bucket is one number, the time in µs at which it will be full again. All times are whole µs.
-- KEYS: generations, buckets. ARGV: proposed value of the first generation, the clock (0 = the server's), then for each
-- bucket the µs that a token takes, the µs from empty to full, and the same in ms.
-- Answers {generation, µs worth of tokens left in each bucket}. A token is taken from every bucket, or from none when
-- one of them has less than it: then that is negative.
local values = redis.call('mget', unpack(KEYS))
local buckets = (#ARGV - 2) / 3
local first = #KEYS - buckets -- of the buckets, less one
local answer = {''}
if first > 0 then
  answer[1] = values[1]
  if not answer[1] then
    answer[1] = ARGV[1]
    redis.call('set', KEYS[1], ARGV[1])
  end
  for i = 2, first do
    answer[1] = answer[1] .. '/' .. (values[i] or '')
  end
end

local now = tonumber(ARGV[2])
if now == 0 then
  local t = redis.call('time')
  now = t[1] * 1000000 + t[2]
end

local full, empty = {}, false
for i = 1, buckets do
  local at = tonumber(values[first + i]) or now
  local fill = now + ARGV[3 * i + 1]
  if at < now then
    at = now
  elseif at > fill then -- the clock was set back, or the bucket was larger: it is empty now, no more, and fills from here
    at = fill
    redis.call('set', KEYS[first + i], string.format('%d', at), 'px', ARGV[3 * i + 2])
  end
  full[i] = at + ARGV[3 * i]
  answer[i + 1] = fill - full[i]
  empty = empty or answer[i + 1] < 0
end
if not empty then
  for i = 1, buckets do
    -- As an integer, with a life that came as text: two floating-point numbers take Redis 3 µs longer to write.
    redis.call('set', KEYS[first + i], string.format('%d', full[i]), 'px', ARGV[3 * i + 2])
  end
end
return answer
