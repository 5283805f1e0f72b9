-- Replaces a cluster's placement hints; what was placed by the old ones is in their figures now.
--
-- KEYS: open, hints, placed.
-- ARGV: the job's generation; the hints as JSON.
-- Returns {"set", ""}, or {"fenced", the open generation}.

local generation = redis.call("HGET", KEYS[1], "generation")
if generation ~= ARGV[1] then
  return { "fenced", generation or "none" }
end
redis.call("SET", KEYS[2], ARGV[2])
redis.call("DEL", KEYS[3])
return { "set", "" }
