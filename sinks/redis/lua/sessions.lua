-- The last process of each broker's name, and when its lease ends. Shared by the scripts, which stand below it.
--
-- "session end", in ms by this server's clock; older versions note the session alone.
--
-- Rendered above from Python: LONGEST_LEASE_MS.

-- The session that is noted, nil without one; and the rest of its lease (ms), nil where that is over. The lease's
-- key is gone before then only if somebody deleted it: its broker still serves.
local function noted_session(sessions, broker, now)
  local session, over = string.match(redis.call("HGET", sessions, broker) or "", "^(%d+) ?(%d*)$")
  local left = (tonumber(over) or 0) - now
  -- None is longer; it only seems so if the clock went back.
  return session, left > 0 and left <= LONGEST_LEASE_MS and left or nil
end
