-- Writes records that the store has lost; only while its cluster is closed and being rebuilt.
--
-- KEYS: open, ownership, journal, bundles.
-- ARGV: cluster; the job's generation; the records as JSON: {bundle, record as JSON, whether the
--       journal topic lacks it}.
-- Returns {"restored", how many were newer than what stood here}, {"fenced", the open generation}, or
--       {"refused", why}.

local OPEN, OWNERSHIP, JOURNAL, BUNDLES = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local cluster, caller = ARGV[1], ARGV[2]
local run_id = string.match(redis.call("INFO", "server"), "run_id:(%x+)")
local opened = redis.call("HMGET", OPEN, "generation", "run_id", "rebuild_run")
if opened[1] ~= caller then
  return { "fenced", opened[1] or "none" }
end
if opened[2] or opened[3] ~= run_id then
  return { "refused", "it is not being rebuilt" }
end

local function quoted(text)
  return (string.gsub(cjson.encode(text), "\\/", "/"))
end

local function older(mine, theirs)
  return mine[1] < theirs[1] or mine[1] == theirs[1] and mine[2] < theirs[2]
end

local restored = 0
for _, entry in ipairs(cjson.decode(ARGV[3])) do
  local bundle, text = entry[1], entry[2]
  local record, stored = cjson.decode(text), redis.call("HGET", OWNERSHIP, bundle)
  if not stored or older(cjson.decode(stored).epoch, record.epoch) then
    redis.call("HSET", OWNERSHIP, bundle, text)
    if record.state == "Deleted" then
      redis.call("ZREM", BUNDLES, bundle)
    else
      redis.call("ZADD", BUNDLES, 0, bundle)
    end
    if entry[3] then
      redis.call("XADD", JOURNAL, "*", "change", '{"cluster":' .. quoted(cluster)
        .. ',"bundle":' .. quoted(bundle) .. ',"event":"restore","record":' .. text .. "}")
    end
    restored = restored + 1
  end
end
return { "restored", tostring(restored) }
