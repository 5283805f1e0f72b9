-- Puts the newest records of bundles whose changes the full journal left out into the journal.
--
-- KEYS: ownership, journal, unjournalled.
-- ARGV: cluster; how many bundles at most.
-- Returns {how many were put there}. In one step: a change that comes between is journalled after
--       what it follows, or its bundle is left out, and put there, once more.

local OWNERSHIP, JOURNAL, UNJOURNALLED = KEYS[1], KEYS[2], KEYS[3]
local cluster, most = ARGV[1], ARGV[2]

local function quoted(text)
  return (string.gsub(cjson.encode(text), "\\/", "/"))
end

-- Fails here where it is no hash: what is taken below would be forgotten.
redis.call("HGET", OWNERSHIP, "")
local refilled, refused = 0, nil
for _, bundle in ipairs(redis.call("SPOP", UNJOURNALLED, most)) do
  local record = redis.call("HGET", OWNERSHIP, bundle)
  if record then
    local added = redis.pcall("XADD", JOURNAL, "*", "change", '{"cluster":' .. quoted(cluster)
      .. ',"bundle":' .. quoted(bundle) .. ',"event":"restore","record":' .. record .. "}")
    if type(added) == "table" and added.err then
      -- Kept for when the journal takes something again.
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
