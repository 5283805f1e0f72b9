-- Finds which history of the data this server writes. Prepended to the scripts that share it.
--
-- A history is one period of one process as master. `master_replid` names it: a server that restarts,
-- or becomes a master, draws a new one. A replica has its master's, but is not a master.

local function server()
  return redis.call("INFO", "replication")
end

-- nil on a replica.
local function history_of(here)
  return string.find(here, "role:master", 1, true) and string.match(here, "master_replid:(%x+)")
end

-- Whether this is the master on a given history; a plain search costs less than half.
local function is_of(here, history)
  return string.find(here, "role:master", 1, true)
    and string.find(here, "master_replid:" .. history, 1, true)
end
