-- Adds to the journal the newest records of bundles whose changes it left out while it was full.
--
-- KEYS: ownership, journal, unjournalled.
-- ARGV: cluster; how many bundles at most.
-- Returns {how many were added}. Atomic: a change in between is journalled after the record that it
--       follows, or its bundle is left out and added again.
--
-- Rendered above from Python: MARK.

local OWNERSHIP, JOURNAL, UNJOURNALLED = KEYS[1], KEYS[2], KEYS[3]
local cluster, most = ARGV[1], ARGV[2]

local function quoted(text)
  return (string.gsub(cjson.encode(text), "\\/", "/"))
end

-- Fails here where it is no hash, and waits where it was deleted: what is taken below would be forgotten.
if not redis.call("HGET", OWNERSHIP, MARK) then
  return { "0" }
end
local refilled, refused = 0, nil
for _, bundle in ipairs(redis.call("SPOP", UNJOURNALLED, most)) do
  local record = redis.call("HGET", OWNERSHIP, bundle)
  if record then
    local added = redis.pcall("XADD", JOURNAL, "*", "change", '{"cluster":' .. quoted(cluster)
      .. ',"bundle":' .. quoted(bundle) .. ',"event":"restore","record":' .. record .. "}")
    if type(added) == "table" and added.err then
      -- Kept until the journal takes entries again.
      redis.call("SADD", UNJOURNALLED, bundle)
      refused = added
    else
      refilled = refilled + 1
    end
  end
end
if refused then
  error(refused)
end
return { tostring(refilled) }
