-- Lets a generation of the job write to one cluster, on this history of the data, once the records are
-- known to be complete.
--
-- KEYS: open, replicas, ownership, bundles.
-- ARGV: generation; the history it was opened on before, "" if none; the longest lease (ms); the history
--       on which the caller has rebuilt the records, "" if none; how long that one must have been closed
--       by then (ms); how many replicas must acknowledge, "" for enough for a majority.
-- Returns {"opened", this history}, {"fenced", the higher generation}, {"spent", this history},
--       {"replica", ""}, {"evicts", the server's policy}, {"isolated", how many replicas have acknowledged
--       lately, of how many}, or {"rebuild", this history, ms to wait at least, when it was closed}: no
--       record can be changed until it is opened.
--
-- From history.lua: server, history_of. From replicas.lua: REPLICA_WAIT_MS, replicas_of, was_promoted, majority_of,
-- noted_replicas, are_in_touch. From marks.lua: are_marked, mark.

local wanted, known, lease_ms = ARGV[1], ARGV[2], ARGV[3]
local rebuilt_on, closed_for, replicas = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local OPEN, REPLICAS, OWNERSHIP, BUNDLES = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local here = server()
local history = history_of(here)
if not history then
  return { "replica", "" }
end
local stored = redis.call("HMGET", OPEN, "generation", "replid", "rebuild_on", "rebuild_since",
  "replicas", "run_id", "replicated", "connected", "before")
local generation, opened_on, by_older_job = stored[1], stored[2], stored[6]
local most, _, before, is_noted = noted_replicas(REPLICAS, history)

if generation and tonumber(generation) > tonumber(wanted) then
  return { "fenced", generation }
end
-- A server that deletes keys when it is full deletes leases first: it is closed until it does not.
local memory = redis.call("INFO", "memory")
local policy = string.match(memory, "maxmemory_policy:([%w-]+)")
if policy ~= "noeviction" and not string.find(memory, "maxmemory:0", 1, true) then
  redis.call("HDEL", OPEN, "replid", "run_id")
  return { "evicts", policy }
end

local is_of_here = opened_on == history and not by_older_job
local marked = are_marked(OWNERSHIP, BUNDLES)
local is_open = is_of_here and marked
-- This generation was opened on other data, or on data that is gone: its epochs must not be used again.
-- Close at once, as this server may lose its role and return before the next generation opens it.
local lost = not is_open or generation ~= wanted
if (known ~= "" and (known ~= history or lost))
  or (generation == wanted and opened_on and not is_open) then
  redis.call("HDEL", OPEN, "replid", "run_id")
  return { "spent", history }
end

-- On one history the counts never fall: this server cannot tell a lost replica from a promoted one.
local looked_at = is_of_here or stored[3] == history
local online, near = replicas_of(here, 0)
-- The most replicas on the histories since it was last opened with enough of them. Brokers' requests may
-- have seen more than the job's calls.
before = math.max(tonumber(stored[9]) or 0, before, not looked_at and tonumber(stored[8]) or 0)
local replicated = stored[7] or (tonumber(stored[5]) or 0) > 0 or most > 0 or before > 0
local connected = math.max(online, most, looked_at and tonumber(stored[8]) or 0)

local function required()
  if replicas then
    return replicas
  end
  -- A master that was left behind may keep a majority of its replicas, but has lost at least the promoted
  -- one: the others are too few. A restarted master may itself be the one that was left behind.
  local others = was_promoted(here) and math.floor(before / 2) or majority_of(before)
  others = math.max(others, looked_at and tonumber(stored[5]) or 0)
  return math.max(majority_of(connected), others)
end

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- Also while it is closed: brokers' leases depend on what the last call found.
redis.call("HSET", OPEN, "generation", wanted, "lease_ms", lease_ms,
  "replicas", string.format("%.0f", required()), "connected", string.format("%.0f", connected),
  "before", string.format("%.0f", before))
if replicas then
  redis.call("HSET", OPEN, "replicas_set", "1")
else
  redis.call("HDEL", OPEN, "replicas_set")
end
if replicated or required() > 0 then
  redis.call("HSET", OPEN, "replicated", "1")
end
if not is_open then
  -- Not in the future: this clock may have gone back.
  local since = stored[3] == history and tonumber(stored[4])
  since = since and math.min(since, now + REPLICA_WAIT_MS)
  if not since then
    -- A master that was left behind grants leases until it notices that its replicas are gone. A store
    -- that remembers nothing cannot exclude that there was one.
    local left_behind = closed_for > 0 and (not generation or replicated)
    since = now + (left_behind and REPLICA_WAIT_MS or 0)
  end
  local remaining = math.max(0, since + closed_for - now)
  -- Until enough replicas follow, they may follow a master that was left behind, and let it grant leases: the
  -- time counts from then on.
  local too_few = near < required()
  -- Records that were deleted since the rebuild began may not have been read.
  if too_few or rebuilt_on ~= history or remaining > 0 or not marked then
    redis.call("HDEL", OPEN, "replid", "run_id", "rebuild_run")
    if not marked then
      -- Without the records it may name bundles that nobody knows.
      redis.call("DEL", BUNDLES)
      mark(OWNERSHIP, BUNDLES)
    end
    redis.call("HSET", OPEN, "rebuild_on", history,
      "rebuild_since", too_few and "" or string.format("%.0f", since))
    if too_few then
      return { "isolated", string.format("%.0f of %.0f", near, required()) }
    end
    return { "rebuild", history, string.format("%.0f", remaining), string.format("%.0f", since) }
  end
  redis.call("HDEL", OPEN, "rebuild_on", "rebuild_since")
  redis.call("HSET", OPEN, "replid", history)
end
-- Noted from here on, so that a first request can tell whether this server hung since.
if required() > 0 then
  are_in_touch(REPLICAS, here, history, required())
end
if before > 0 and near >= required() then
  redis.call("HDEL", OPEN, "before")
  redis.call("HDEL", REPLICAS, "before", is_noted and "before" or "online")
end
return { "opened", history, "0" }
