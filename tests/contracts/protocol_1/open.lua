-- Lets a generation of the job write to one cluster, on this run of this server, once the records
-- are known to be complete.
--
-- KEYS: open.
-- ARGV: generation; the run_id it was opened on before, "" if it was not; the longest lease (ms); the
--       run_id that the caller has rebuilt the records on, "" if none; how long that run must have
--       been closed by then (ms).
-- Returns {"opened", run_id}, {"fenced", the higher generation}, {"spent", this run_id}, or
--       {"rebuild", this run_id, ms to wait at least}: nobody may write until it is opened.

local wanted, known_run, lease_ms = ARGV[1], ARGV[2], ARGV[3]
local rebuilt_on, closed_for = ARGV[4], tonumber(ARGV[5])
local OPEN = KEYS[1]
local run_id = string.match(redis.call("INFO", "server"), "run_id:(%x+)")
local stored = redis.call("HMGET", OPEN, "generation", "run_id", "rebuild_run", "rebuild_since")
local generation, stored_run = stored[1], stored[2]

if generation and tonumber(generation) > tonumber(wanted) then
  return { "fenced", generation }
end
-- The server came back, perhaps without its last writes: their epochs may not be given out again.
if generation == wanted and stored_run and stored_run ~= run_id then
  return { "spent", run_id }
end
if known_run ~= "" and known_run ~= run_id then
  return { "spent", run_id }
end

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call("HSET", OPEN, "generation", wanted, "lease_ms", lease_ms)
if stored_run ~= run_id then
  local since = stored[3] == run_id and tonumber(stored[4]) or now
  local remaining = math.max(0, since + closed_for - now)
  if rebuilt_on ~= run_id or remaining > 0 then
    redis.call("HDEL", OPEN, "run_id")
    redis.call("HSET", OPEN, "rebuild_run", run_id, "rebuild_since", string.format("%.0f", since))
    return { "rebuild", run_id, string.format("%.0f", remaining) }
  end
  redis.call("HDEL", OPEN, "rebuild_run", "rebuild_since")
  redis.call("HSET", OPEN, "run_id", run_id)
end
return { "opened", run_id, "0" }
