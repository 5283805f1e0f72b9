-- Lets a generation of the job write to one cluster, on this run of this server.
--
-- KEYS: open.
-- ARGV: generation; the run_id it was opened on before, "" if it was not.
-- Returns {"opened", run_id}, {"fenced", the higher generation} or {"spent", this run_id}.

local wanted, known_run = ARGV[1], ARGV[2]
local run_id = string.match(redis.call("INFO", "server"), "run_id:(%x+)")
local stored = redis.call("HMGET", KEYS[1], "generation", "run_id")
local generation, stored_run = stored[1], stored[2]

if generation and tonumber(generation) > tonumber(wanted) then
  return { "fenced", generation }
end
-- The server came back, perhaps without its last writes: their epochs may not be given out again.
if generation == wanted and stored_run ~= run_id then
  return { "spent", run_id }
end
if known_run ~= "" and known_run ~= run_id then
  return { "spent", run_id }
end

redis.call("HSET", KEYS[1], "generation", wanted, "run_id", run_id)
return { "opened", run_id }
