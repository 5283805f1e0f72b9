-- Indexes what brokers own and which bundles exist, from the records; only while their cluster is closed
-- and being rebuilt. Outdated entries do no harm: readers check the record.
--
-- KEYS: open, ownership, bundles, the common prefix of brokers' owned sets.
-- ARGV: the job's generation; then bundles.
-- Returns {"noted", ""}, {"fenced", the higher generation}, or {"refused", why}.
--
-- From history.lua: server, history_of. From records.lua: readable_record.

local OPEN, OWNERSHIP, BUNDLES, OWNED = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local opened = redis.call("HMGET", OPEN, "generation", "replid", "rebuild_on", "run_id")
if tonumber(opened[1] or 0) > tonumber(ARGV[1]) then
  return { "fenced", opened[1] }
end
local refused = opened[1] ~= ARGV[1] or opened[2] or opened[4]
if refused or opened[3] ~= history_of(server()) then
  return { "refused", "it is not being rebuilt" }
end

for i = 2, #ARGV do
  local record = readable_record(redis.call("HGET", OWNERSHIP, ARGV[i]) or nil)
  if record and record.owner then
    redis.call("SADD", OWNED .. record.owner, ARGV[i])
  end
  if record and record.state ~= "Deleted" then
    redis.call("ZADD", BUNDLES, 0, ARGV[i])
  end
end
return { "noted", "" }
