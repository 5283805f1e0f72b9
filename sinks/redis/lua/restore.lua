-- Writes records that the store has lost; only while its cluster is closed and being rebuilt.
--
-- KEYS: open, ownership, journal, bundles, the common prefix of brokers' owned sets, unjournalled.
-- ARGV: cluster; the job's generation; the records as JSON: {bundle, record as JSON, whether the
--       journal topic lacks it}.
-- Returns {"restored", how many were newer than the stored ones}, {"fenced", the open generation}, or
--       {"refused", why}.
--
-- Rendered above from Python: MOST_JOURNAL. From history.lua: server, history_of. From records.lua: readable_record.

local OPEN, OWNERSHIP, JOURNAL, BUNDLES, OWNED = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local UNJOURNALLED = KEYS[6]
local cluster, caller = ARGV[1], ARGV[2]
local opened = redis.call("HMGET", OPEN, "generation", "replid", "rebuild_on", "run_id")
if tonumber(opened[1] or 0) > tonumber(caller) then
  return { "fenced", opened[1] }
end
local refused = opened[1] ~= caller or opened[2] or opened[4]
if refused or opened[3] ~= history_of(server()) then
  return { "refused", "it is not being rebuilt" }
end

local function quoted(text)
  return (string.gsub(cjson.encode(text), "\\/", "/"))
end

local function older(mine, theirs)
  return mine[1] < theirs[1] or mine[1] == theirs[1] and mine[2] < theirs[2]
end

-- The stored record; nil if there is none, or none that a request of the caller could change.
local function known_of(text)
  local known = readable_record(text)
  return known and known.epoch[1] <= tonumber(caller) and known or nil
end

-- A journal of the wrong type has none either.
local length = redis.pcall("XLEN", JOURNAL)
local has_room = type(length) == "number" and length < MOST_JOURNAL
local restored = 0
for _, entry in ipairs(cjson.decode(ARGV[3])) do
  local bundle, text = entry[1], entry[2]
  local record, before = cjson.decode(text), known_of(redis.call("HGET", OWNERSHIP, bundle))
  if not before or older(before.epoch, record.epoch) then
    redis.call("HSET", OWNERSHIP, bundle, text)
    if before and before.owner then
      redis.call("SREM", OWNED .. before.owner, bundle)
    end
    if record.owner then
      redis.call("SADD", OWNED .. record.owner, bundle)
    end
    if record.state == "Deleted" then
      redis.call("ZREM", BUNDLES, bundle)
    else
      redis.call("ZADD", BUNDLES, 0, bundle)
    end
    if entry[3] then
      local added = has_room and redis.pcall("XADD", JOURNAL, "*", "change", '{"cluster":' .. quoted(cluster)
        .. ',"bundle":' .. quoted(bundle) .. ',"event":"restore","record":' .. text .. "}")
      if not added or type(added) == "table" and added.err then
        -- The relay adds it to the journal once that takes entries again.
        redis.call("SADD", UNJOURNALLED, bundle)
      end
    end
    restored = restored + 1
  end
end
return { "restored", tostring(restored) }
