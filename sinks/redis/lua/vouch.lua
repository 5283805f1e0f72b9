-- Notes that this server's clock agrees with a monotonic clock, and when: the note is valid for a second.
-- If this clock jumps by more, either way, the note is no longer valid.
--
-- KEYS: clock.
-- ARGV: this server's time (ms) by the caller's own clock.
-- Returns {"noted", ""}, or {"doubted", this server's time (ms)}.
--
-- Rendered above from Python: CLOCK_MARGIN_MS.

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if math.abs(now - tonumber(ARGV[1])) > CLOCK_MARGIN_MS then
  return { "doubted", string.format("%.0f", now) }
end
redis.call("SET", KEYS[1], string.format("%.0f", now), "PX", 1000)
return { "noted", "" }
