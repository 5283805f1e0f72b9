-- Which history of the data this server writes. Shared by the scripts, which stand below it.
--
-- A history is one reign of one process as a master. `master_replid` names it: a server that
-- restarts, or becomes a master, draws a new one. A replica has its master's, but is no master.
--
-- Rendered above from Python: REPLICA_LAG_S.

local function server()
  return redis.call("INFO", "replication")
end

-- nil on a replica.
local function history_of(here)
  return string.find(here, "role:master", 1, true) and string.match(here, "master_replid:(%x+)")
end

-- The same question of one history; a plain search costs less than half.
local function is_of(here, history)
  return string.find(here, "role:master", 1, true)
    and string.find(here, "master_replid:" .. history, 1, true)
end

-- How many replicas are connected, and how many of them have acknowledged lately.
local function replicas_of(here)
  local online, near = 0, 0
  for lag in string.gmatch(here, "state=online,offset=%d+,lag=(%d+)") do
    online = online + 1
    if tonumber(lag) <= REPLICA_LAG_S then
      near = near + 1
    end
  end
  return online, near
end

-- "1 of 2" where fewer replicas have acknowledged lately than must have, else nil: another server
-- may have been made the master, and this one would not know.
local function short_of_replicas(here, wanted)
  local least = tonumber(wanted) or 0
  if least == 0 then
    return nil
  end
  local _, near = replicas_of(here)
  return near < least and string.format("%.0f of %.0f", near, least) or nil
end
