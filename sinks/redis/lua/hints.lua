-- Replaces a cluster's placement hints; the new hints' loads include what the old ones placed.
--
-- KEYS: open, hints, placed, tallies, groups.
-- ARGV: the job's generation; the hints as JSON; a digest of the groups, then each field of the groups'
--       hash and its value.
-- Returns {"set", ""}, {"fenced", the open generation, a higher one}, or {"closed", why}.
--
-- From generation.lua: other_generation.

-- unpack fails on long lists.
local PAGE = 1000

local refused = other_generation(KEYS[1], tonumber(ARGV[1]))
if refused then
  return refused
end
-- The groups rarely change. A key of the wrong type is written again.
if redis.pcall("HGET", KEYS[5], "") ~= ARGV[3] then
  redis.call("DEL", KEYS[5])
  for first = 4, #ARGV, PAGE do
    redis.call("HSET", KEYS[5], unpack(ARGV, first, math.min(first + PAGE - 1, #ARGV)))
  end
  redis.call("HSET", KEYS[5], "", ARGV[3])
end
redis.call("SET", KEYS[2], ARGV[2])
redis.call("DEL", KEYS[3], KEYS[4])
return { "set", "" }
