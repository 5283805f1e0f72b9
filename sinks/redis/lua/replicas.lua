-- How many replicas have acknowledged lately what this server wrote, and how many must. Shared by the scripts,
-- which stand below it.
--
-- Rendered above from Python: REPLICA_LAG_S, REPLICA_WAIT_MS.

-- How many replicas are connected, and how many of them are near: they acknowledged within
-- REPLICA_LAG_S by this server's clock, and everything written up to `offset`.
local function replicas_of(here, offset)
  local online, near = 0, 0
  -- Port 0: redis-cli --replica, which acknowledges nothing and is not a server. A negative lag means
  -- that the clock went back.
  local a_server = "port=[1-9]%d*,state=online,offset=(%d+),lag=(%-?%d+)"
  for acked, lag in string.gmatch(here, a_server) do
    online = online + 1
    lag = tonumber(lag)
    if lag >= 0 and lag <= REPLICA_LAG_S and tonumber(acked) >= offset then
      near = near + 1
    end
  end
  return online, near
end

-- Whether it was a replica until this history began. A master that restarts from its AOF, or that starts
-- another history after a long time without replicas, remembers no earlier one; a master that restarts
-- from a snapshot looks the same as a promoted replica.
local function was_promoted(here)
  return not string.find(here, "master_replid2:00000000", 1, true)
end

-- How many replicas make, with their master, a majority of the servers.
local function majority_of(online)
  return math.floor((online + 1) / 2)
end

-- What a replica acknowledges only once it has got more than this server has written so far.
local function next_offset(here)
  return tonumber(string.match(here, "master_repl_offset:(%d+)")) + 1
end

-- The note about replicas: the most that were connected on this history; the offset that enough have to reach
-- since too few were near on it, nil without one; the most on the histories before that the job has not opened
-- with enough; whether the note is on this history.
local function noted_replicas(replicas, history)
  local noted = redis.call("HMGET", replicas, "on", "online", "alone", "before")
  local online, before = tonumber(noted[2] or "") or 0, tonumber(noted[4] or "") or 0
  if noted[1] == history then
    return online, tonumber(noted[3] or ""), before, true
  end
  return 0, nil, math.max(before, online), false
end

local function note_replicas(replicas, history, online, alone)
  -- For the job's next open: the master before may have had more replicas than its last open found.
  local _, _, before = noted_replicas(replicas, history)
  redis.call("HSET", replicas, "on", history, "online", string.format("%.0f", online),
    "alone", alone and string.format("%.0f", alone) or "", "before", string.format("%.0f", before))
end

-- Between two notes of what replicas have to acknowledge: each is a write.
local ASK_AGAIN_MS = 250

-- Whether `least` replicas have acknowledged what was written within REPLICA_WAIT_MS. Their lag alone does not
-- tell: where this server hung, what waited in its sockets looks new once it is read.
local function are_in_touch(replicas, here, history, least)
  local clock = redis.call("TIME")
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  local noted = redis.call("HGET", replicas, "asked") or ""
  local of, at, offset, heard = string.match(noted, "^(%x+) (%d+) (%d+) (%d+)$")
  local asked_at, heard_at, reached = now, now, true
  if of == history then
    local _, near = replicas_of(here, tonumber(offset))
    asked_at, reached = tonumber(at), near >= least
    heard_at = reached and asked_at or tonumber(heard)
  end
  -- A time to come: this clock went back.
  local in_touch = heard_at <= now and now - heard_at <= REPLICA_WAIT_MS
  if of ~= history or reached and (not in_touch or now - asked_at >= ASK_AGAIN_MS) then
    redis.call("HSET", replicas, "asked",
      string.format("%s %.0f %.0f %.0f", history, now, next_offset(here), heard_at))
  end
  return in_touch
end

-- "1 of 2" if fewer replicas are near than must be, else nil: another server may have become the master
-- without this one knowing. New replicas count from the next script on. `wanted`: how many the open hash
-- requires; `fixed`: not nil if an operator set that number; `looked_at`: whether the job has seen this history.
local function short_of_replicas(replicas, here, history, wanted, fixed, looked_at)
  local least = tonumber(wanted) or 0
  local most, alone, before = noted_replicas(replicas, history)
  -- With its first replica a master starts a backlog, and with that another history.
  if least == 0 and before == 0 and string.find(here, "repl_backlog_active:0", 1, true) then
    return nil
  end
  -- Acknowledgements from before this server was alone prove nothing, even if its clock shows otherwise.
  local online, near = replicas_of(here, alone or 0)
  if not fixed then
    -- The job requires the same (open.lua). Until it has looked, this may be a server that was left behind.
    local others = looked_at and was_promoted(here) and math.floor(before / 2) or majority_of(before)
    least = math.max(least, majority_of(most), majority_of(online), others)
  end
  if near >= least and least > 0 and not are_in_touch(replicas, here, history, least) then
    near = 0
  end
  local is_short = near < least
  if is_short and not alone then
    note_replicas(replicas, history, math.max(most, online), next_offset(here))
  elseif online > most or alone and not is_short then
    note_replicas(replicas, history, math.max(most, online), is_short and alone)
  end
  return is_short and string.format("%.0f of %.0f", near, least) or nil
end
