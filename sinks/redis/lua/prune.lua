-- Removes the records of bundles that ended long ago.
--
-- KEYS: open, ownership, journal, unjournalled, bundles.
-- ARGV: cluster; the job's generation; how long ago (ms); then bundles.
-- Returns {"pruned", how many}, {"closed", why}, or {"fenced", the higher generation}.
--
-- Rendered above from Python: MOST_JOURNAL. From gate.lua: barred.

local OPEN, OWNERSHIP, JOURNAL, UNJOURNALLED = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local cluster, caller, kept_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local refused = barred(OPEN, OWNERSHIP, KEYS[5], caller)
if refused then
  return refused
end
if redis.call("SCARD", UNJOURNALLED) > 0 or redis.call("XLEN", JOURNAL) >= MOST_JOURNAL then
  -- The journal would hold the end of a bundle before its last record, or it has no room.
  return { "pruned", "0" }
end

local clock = redis.call("TIME")
local before = clock[1] * 1000 + math.floor(clock[2] / 1000) - kept_ms

local function quoted(text)
  return (string.gsub(cjson.encode(text), "\\/", "/"))
end

local pruned = 0
for i = 4, #ARGV do
  local bundle = ARGV[i]
  local text = redis.call("HGET", OWNERSHIP, bundle)
  local record = text and cjson.decode(text)
  if record and record.state == "Deleted" and record.epoch[1] < caller and (record.since or 0) < before then
    -- First what may fail: a record that is journalled twice does no harm.
    redis.call("XADD", JOURNAL, "*", "change", '{"cluster":' .. quoted(cluster)
      .. ',"bundle":' .. quoted(bundle) .. ',"event":"retire","record":' .. text .. ',"pruned":true}')
    redis.call("HDEL", OWNERSHIP, bundle)
    pruned = pruned + 1
  end
end
return { "pruned", tostring(pruned) }
