-- Forgets the last process of broker names that have had no lease for long.
--
-- KEYS: open, sessions, leases' common prefix, ownership, bundles.
-- ARGV: the job's generation; then broker, session, broker, session ...
-- Returns {"forgotten", how many}, {"closed", why}, or {"fenced", the higher generation}.
--
-- From gate.lua: barred.

local OPEN, SESSIONS, LEASES = KEYS[1], KEYS[2], KEYS[3]
local caller = tonumber(ARGV[1])

local refused = barred(OPEN, KEYS[4], KEYS[5], caller)
if refused then
  return refused
end

local forgotten = 0
for i = 2, #ARGV, 2 do
  local broker, session = ARGV[i], ARGV[i + 1]
  -- A lease's key has the same hash tag as the prefix, so it is on the same node.
  if redis.call("HGET", SESSIONS, broker) == session and redis.call("EXISTS", LEASES .. broker) == 0 then
    forgotten = forgotten + redis.call("HDEL", SESSIONS, broker)
  end
end
return { "forgotten", tostring(forgotten) }
