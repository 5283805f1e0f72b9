-- Replaces a cluster's placement hints; the new hints' loads include what the old ones placed.
--
-- KEYS: open, hints, placed.
-- ARGV: the job's generation; the hints as JSON.
-- Returns {"set", ""}, {"fenced", the open generation, a higher one}, or {"closed", why}.

local generation = redis.call("HGET", KEYS[1], "generation")
if not generation then
  return { "closed", "no job has opened it" }
end
if tonumber(generation) > tonumber(ARGV[1]) then
  return { "fenced", generation }
end
if generation ~= ARGV[1] then
  return { "closed", "it is open to generation " .. generation }
end
redis.call("SET", KEYS[2], ARGV[2])
redis.call("DEL", KEYS[3])
return { "set", "" }
