-- Notes how far topics have migrated. Only the broker that serves a topic's bundle may, by the epoch at which it
-- serves it: a broker that lost the bundle is refused, and the next owner goes on from what stands here.
--
-- KEYS: open. The cluster's other keys differ from it in their last part, so they are on the same node.
-- ARGV: the call as JSON, {broker, session, changes, named}. A change is {topic, bundle, position, epoch, migration,
--       expect, event, wave, backlog, subscription, subscriptions, regions, more, gone, problem}; without an event only those
--       from backlog on are noted. Named are bundles whose topics are all enlisted: {bundle, epoch, migration, wave}.
-- Returns {"done", the outcomes as JSON}: a list of {topic, reason, record}, the record as JSON text that stands
--       now; or {"closed", why}, {"isolated", "1 of 2"}.
--
-- Rendered above from Python: TOPIC_EFFECTS (";state event=state given stays;..."), SERVING, ONWARD, BACK and
-- MAY_ENLIST (" state state "), MAKING and COUNTED (" event event "), MOST_NEW; a name after "REFUSED." becomes its
-- text. From history.lua: server, is_of. From replicas.lua: short_of_replicas. From marks.lua: are_marked. From records.lua: readable_record.
-- From stages.lua: stage_of.

local OPEN = KEYS[1]
local PREFIX = string.sub(OPEN, 1, -#"open" - 1)
local OWNERSHIP, MIGRATIONS = PREFIX .. "ownership", PREFIX .. "migrations"

local opened = redis.call("HMGET", OPEN, "replid", "run_id", "replicas", "replicas_set")
local here = server()
if opened[2] or not opened[1] or not is_of(here, opened[1]) then
  return { "closed", "it is not open on this history" }
end
-- Clients are sent to another cluster by what stands here, and that cannot be taken back: a master that others
-- have replaced says nothing of the topics.
local isolated = short_of_replicas(PREFIX .. "replicas", here, opened[1], opened[3], opened[4], true)
if isolated then
  return { "isolated", isolated }
end
if not are_marked(OWNERSHIP, PREFIX .. "bundles") then
  return { "closed", NOT_MARKED }
end

local call = cjson.decode(ARGV[1])
local is_held = redis.call("GET", PREFIX .. "lease:" .. call.broker) == "+" .. call.session

local function is_among(name, names)
  return string.find(names, " " .. name .. " ", 1, true) ~= nil
end

local records, migrations = {}, {}

-- Whether the caller serves the bundle by this epoch.
local function serves(bundle, epoch)
  local record = records[bundle]
  if record == nil then
    record = readable_record(redis.call("HGET", OWNERSHIP, bundle)) or false
    records[bundle] = record
  end
  return record and record.owner == call.broker and is_among(record.state, SERVING)
    and record.epoch[1] == epoch[1] and record.epoch[2] == epoch[2]
end

-- A migration's stage; false if there is none, or it cannot be read.
local function migration_of(id)
  local found = migrations[id]
  if found == nil then
    found = stage_of(redis.call("HGET", MIGRATIONS, id)) or false
    migrations[id] = found
  end
  return found
end

-- Of the bundle: where the next owner looks. Names of topics may have any character.
local function namespace_of(change)
  return string.match(change.bundle, "^(.+)/[^/]*$") or ""
end

local function readable_topic(text)
  local decoded, topic = pcall(cjson.decode, text or "")
  local sound = decoded and type(topic) == "table" and type(topic.state) == "string"
    and type(topic.migration) == "string"
  return sound and topic or { state = "unknown" }
end

-- Whether the condition of an event holds.
local function holds(given, change, topic, migration)
  if given == "open-wave" then
    return migration.state == "running" and (topic.wave or 0) <= migration.wave
  elseif given == "onward" then
    return topic.stays or is_among(migration.state, ONWARD)
  elseif given == "rolling-back" then
    return not topic.stays and is_among(migration.state, BACK)
  elseif given == "new" then
    return topic.migration ~= change.migration and is_among(migration.state, MAY_ENLIST)
  elseif given == "stayed" then
    -- Another one than the change's, which is not rolled back.
    local earlier = migration_of(topic.migration)
    return earlier and earlier.state == "rolled-back" and topic.stays and is_among(migration.state, MAY_ENLIST)
  elseif given == "takes-new" then
    return migration.state == "completed"
      or is_among(migration.state, MAY_ENLIST) and (change.wave or 0) <= migration.wave
  end
  return true
end

-- Whether as many topics of the change's namespace as may have begun on green: a client may invent any name.
local function is_full(change)
  local counts, name = PREFIX .. "migrated:" .. change.migration, namespace_of(change) .. " stays"
  return (tonumber(redis.call("HGET", counts, name) or "") or 0) >= MOST_NEW
end

-- Whether a topic that is on blue has a record of a migration that is remembered no longer.
local function is_left_over(change, topic)
  return change.event == "forget" and topic.state == "active" and topic.migration == change.migration
    and not redis.call("HGET", MIGRATIONS, change.migration)
end

-- The topic's next state, and whether it stays on green; or nil, and why it is refused.
local function judge(change, topic)
  local migration = migration_of(change.migration)
  if not migration and not is_left_over(change, topic) then
    return nil, REFUSED.UNKNOWN_MIGRATION
  elseif not is_held then
    return nil, REFUSED.NO_LEASE
  elseif not serves(change.bundle, change.epoch) then
    return nil, REFUSED.NOT_OWNER
  elseif topic.state ~= change.expect then
    return nil, REFUSED.STALE_STATE
  elseif topic.migration ~= change.migration and not is_among(change.event or "", MAKING) then
    return nil, REFUSED.OTHER_MIGRATION
  elseif not change.event then
    return topic.state, topic.stays
  end
  local _, row = string.find(TOPIC_EFFECTS, ";" .. topic.state .. " " .. change.event .. "=", 1, true)
  if not row then
    return nil, REFUSED.ILLEGAL
  end
  local state, given, stays = string.match(TOPIC_EFFECTS, "^(%S+) (%S+) (%S+);", row + 1)
  if not holds(given, change, topic, migration) then
    return nil, REFUSED.NOT_NOW
  elseif given == "takes-new" and is_full(change) then
    return nil, REFUSED.FULL
  end
  return state, state ~= "active" and (topic.stays or stays == "true")
end

-- Add to a count of the migration, of the topic's wave and of its namespace.
local function count(migration, wave, namespace, name, more)
  if more ~= 0 then
    local counts, by = PREFIX .. "migrated:" .. migration, string.format("%.0f", more)
    redis.call("HINCRBY", counts, string.format("%.0f ", wave) .. name, by)
    redis.call("HINCRBY", counts, namespace .. " " .. name, by)
  end
end

local function tally(topic, namespace, sign)
  if topic.state ~= "unknown" and migration_of(topic.migration) then
    count(topic.migration, topic.wave or 0, namespace, topic.state, sign)
    count(topic.migration, topic.wave or 0, namespace, "backlog", sign * (topic.backlog or 0))
    count(topic.migration, topic.wave or 0, namespace, "stays", topic.stays and sign or 0)
    count(topic.migration, topic.wave or 0, namespace, "began", topic.began and sign or 0)
  end
end

-- A member with subscriptions or regions; nothing if there are none.
local function waiting(member, rows)
  local texts = {}
  for i, row in ipairs(rows) do
    texts[i] = '{"name":' .. cjson.encode(row.name) .. string.format(',"messages":%.0f}', row.messages)
  end
  return #texts > 0 and ',"' .. member .. '":[' .. table.concat(texts, ",") .. "]" or ""
end

-- By hand: cjson writes members in any order and long integers as 1.7e+12.
local function written(topic)
  return '{"state":"' .. topic.state .. '","migration":' .. cjson.encode(topic.migration)
    .. string.format(',"wave":%.0f,"epoch":[%.0f,%.0f]', topic.wave, topic.epoch[1], topic.epoch[2])
    .. (topic.backlog > 0 and string.format(',"backlog":%.0f', topic.backlog) or "")
    .. (topic.subscription ~= "" and ',"subscription":' .. cjson.encode(topic.subscription) or "")
    .. waiting("subscriptions", topic.subscriptions) .. waiting("regions", topic.regions)
    .. (topic.more > 0 and string.format(',"more":%.0f', topic.more) or "")
    .. (topic.stays and ',"stays":true' or "")
    .. (topic.began and ',"began":true' or "")
    .. (topic.back and ',"back":true' or "")
    .. (topic.lost and ',"lost":true' or "")
    .. (topic.gone ~= "" and ',"gone":' .. cjson.encode(topic.gone) or "")
    .. (topic.via ~= "" and ',"via":' .. cjson.encode(topic.via) or "")
    .. (topic.problem ~= "" and ',"problem":' .. cjson.encode(topic.problem) or "") .. "}"
end

local function write(change, topic, state, stays)
  local namespace = namespace_of(change)
  local topics, places = PREFIX .. "topics:" .. namespace, PREFIX .. "places:" .. namespace
  local is_new = is_among(change.event or "", MAKING)
  local wave = is_new and change.wave or not is_new and topic.wave or 0
  -- What a later migration enlists although it was terminated is on the green of the earlier one.
  local stayed = change.event == "enlist" and stays
  local after = { state = state, migration = change.migration, wave = wave, epoch = change.epoch,
    began = change.event == "start-on-green" or not is_new and topic.began,
    back = change.event == "reopen" or not change.event and topic.back,
    lost = change.event == "lose" or not is_new and topic.lost,
    gone = change.gone or (stayed or not is_new) and topic.gone or "",
    via = (stayed or not is_new) and topic.via or stayed and topic.migration or "",
    backlog = change.backlog or 0, subscription = change.subscription or "",
    subscriptions = change.subscriptions or {}, regions = change.regions or {}, more = change.more or 0,
    stays = stays, problem = change.problem or "" }
  tally(topic, namespace, -1)
  tally(after, namespace, 1)
  local failed = after.problem ~= ""
  if failed or is_among(change.event or "", COUNTED) then
    count(change.migration, after.wave, namespace, "attempts", 1)
    count(change.migration, after.wave, namespace, "errors", failed and 1 or 0)
  end
  if state == "unknown" then
    redis.call("HDEL", topics, change.topic)
    redis.call("ZREM", places, change.topic)
    return nil
  end
  local text = written(after)
  redis.call("HSET", topics, change.topic, text)
  if is_new then
    redis.call("ZADD", places, string.format("%.0f", change.position), change.topic)
  end
  return text
end

local outcomes = {}
for i, change in ipairs(call.changes or {}) do
  local namespace = namespace_of(change)
  local text = redis.call("HGET", PREFIX .. "topics:" .. namespace, change.topic)
  local topic = readable_topic(text)
  local state, why = judge(change, topic)
  local members = '{"topic":' .. cjson.encode(change.topic)
  if state then
    text = write(change, topic, state, why)
  else
    members = members .. ',"reason":"' .. why .. '"'
  end
  outcomes[i] = members .. (text and ',"record":' .. cjson.encode(text) or "") .. "}"
end
for _, named in ipairs(call.named or {}) do
  local migration = migration_of(named.migration)
  local wanted = migration and is_among(migration.state, MAY_ENLIST)
  if is_held and wanted and serves(named.bundle, named.epoch) then
    redis.call("HSET", PREFIX .. "named:" .. named.migration, named.bundle, string.format("%.0f", named.wave))
  end
end
return { "done", "[" .. table.concat(outcomes, ",") .. "]" }
