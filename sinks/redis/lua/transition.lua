-- Applies a list of transitions to one cluster's ownership records, all in this one step: a page of a
-- batch of the job, or a broker's requests.
--
-- KEYS: open, ownership, journal, applied, bundles, placed, the leases' common prefix, that of brokers'
--       owned sets, unjournalled, replicas, sessions, tallies, then every command stream a transition may append to.
-- ARGV: cluster; the job's generation, query id and page ("", "", "" from a broker), a page being
--       "batch/how many transitions come before it/digest of the whole batch"; the transitions as JSON:
--       {id, bundle, event, expect, broker, actor, session, within, commands, neighbour, children,
--       candidates, each, tallies}, each command being {index of its stream in KEYS, its broker, its JSON
--       without the stamps}, each candidate {broker, load}, tallies {candidate: {tally: the value it must have, or
--       a negative one}}, a neighbour {bundle, expect}; this server's
--       time (ms) by the caller's own clock, "" if the caller is not certain of it.
-- Returns {status, detail}: applied with the outcomes as JSON, or repeated with those of the page that
--       was applied from this place on, of any length; closed with why; isolated with how many replicas
--       have acknowledged lately; fenced with the open generation; older with the batch that was applied
--       last.
--
-- The applied hash holds each query's last batch: field "query" is "batch digest count outcomes" of the
-- first page, "query#place" the same of another. Commit 8a0b0fc wrote "query" as "batch outcomes" of a
-- whole batch. Field "" lists the newest queries, newest first, one a line.
--
-- Rendered from Python: EFFECTS (";state event=state owner-rule given;..."), BROKER_EVENTS, JOB_EVENTS,
-- STREAK_ENDS, SOON_MS, MOST_FALLS, CLOCK_MARGIN_MS, MOST_JOURNAL, LONGEST_LEASE_MS; a name after "REFUSED." becomes its text. From
-- history.lua: server, is_of, short_of_replicas. From marks.lua: are_marked. From records.lua: readable_record.
-- From sessions.lua: noted_session.
-- JSON is built by hand: cjson writes an empty list as {} and long integers as 1.7e+12.

-- A broker this far behind has missed the deadlines of the commands that are trimmed.
local LONGEST_COMMAND_STREAM = 10000
-- A command is useless after minutes: a stream without one for so long belongs to a broker that is gone.
local COMMANDS_KEPT_S = 86400
-- How many queries' last batches are remembered.
local MOST_QUERIES = 8

local OPEN, OWNERSHIP, JOURNAL, APPLIED = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
-- A lease's key has the same hash tag as its prefix, so it is on the same node.
local BUNDLES, PLACED, LEASES, OWNED = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local UNJOURNALLED, REPLICAS, SESSIONS, TALLIES = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local cluster, caller, query, page = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local by_broker = caller == ""
local batch, place, digest = string.match(page, "^(%d+)/(%d+)/(%x+)$")
place = tonumber(place)

-- The batch, its digest, the number of outcomes and the outcomes in a field of the applied hash; nil if
-- there is none.
local function applied(field)
  local stored = redis.call("HGET", APPLIED, field)
  return string.match(stored or "", "^(%d+) (%x*) ?(%d*) ?(%[.*)$")
end

local function field_of(of, at)
  return at == 0 and of or of .. "#" .. at
end

-- The answer instead of applying the page; nil if it is the next of its batch.
local function known_page()
  local last, of = applied(query)
  local ahead = tonumber(last or -1) - tonumber(batch)
  if ahead > 0 or ahead == 0 and of ~= "" and of ~= digest then
    return "older", last
  end
  if ahead == 0 then
    local _, _, _, outcomes = applied(field_of(query, place))
    return outcomes and "repeated", outcomes
  end
  if place > 0 then
    -- The store has lost the pages before it: the caller must send the batch from its start.
    return "closed", "it does not know the batch's first page"
  end
end

-- Forget a query's outcomes from this place on; its pages follow one another.
local function forget(of, at)
  local batch_there, _, count = applied(field_of(of, at))
  while batch_there do
    redis.call("HDEL", APPLIED, field_of(of, at))
    at = at + (tonumber(count) or 1)
    batch_there, _, count = applied(field_of(of, at))
  end
end

-- Note that the query is the newest; forgets those that were not used for long.
local function renew()
  local kept, known = { query }, redis.call("HGET", APPLIED, "") or ""
  if string.match(known, "^[^\n]*") == query then
    return
  end
  for each in string.gmatch(known, "[^\n]+") do
    if each ~= query and #kept == MOST_QUERIES then
      forget(each, 0)
    elseif each ~= query then
      kept[#kept + 1] = each
    end
  end
  redis.call("HSET", APPLIED, "", table.concat(kept, "\n"))
end

local function remember(count, outcomes)
  if place == 0 then
    -- The first page of the batch before is about to be overwritten.
    local _, _, first = applied(query)
    forget(query, tonumber(first) or 1)
    renew()
  end
  local text = batch .. " " .. digest .. " " .. count .. " " .. outcomes
  redis.call("HSET", APPLIED, field_of(query, place), text)
end

local opened = redis.call("HMGET", OPEN, "replid", "replicas", "replicas_set", "run_id", "generation")
local history, generation = opened[1], opened[5]
if opened[4] then
  return { "closed", "a job of an older version has opened it: upgrade the job first" }
end
if not history then
  return { "closed", "no job has opened it" }
end
local here = server()
if not is_of(here, history) then
  return { "closed", "its server restarted, or is not the master that it was" }
end
if not are_marked(OWNERSHIP, BUNDLES) then
  return { "closed", NOT_MARKED }
end
local isolated = short_of_replicas(REPLICAS, here, history, opened[2], opened[3])
if isolated then
  return { "isolated", isolated }
end
if not by_broker then
  -- A caller above the open generation has claimed it but not opened the store yet.
  if tonumber(caller) > tonumber(generation) then
    return { "closed", "it is open to generation " .. generation }
  end
  if tonumber(caller) < tonumber(generation) then
    return { "fenced", generation }
  end
  local status, detail = known_page()
  if status then
    return { status, detail }
  end
end

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- An expired lease proves that time has passed only if this clock did not jump.
local vouched = math.abs(now - (tonumber(ARGV[6]) or math.huge)) <= CLOCK_MARGIN_MS

local function quoted(text)
  -- cjson escapes every slash, which is legal and hard to read.
  return (string.gsub(cjson.encode(text), "\\/", "/"))
end

local function member(name, text)
  return text and ',"' .. name .. '":' .. quoted(text) or ""
end

-- Also where somebody deleted its lease: it serves until that would have ended.
local function holds_lease(broker)
  if redis.call("EXISTS", LEASES .. broker) == 1 then
    return true
  end
  local _, rest = noted_session(SESSIONS, broker, now)
  return rest ~= nil
end

-- Whether it may get a bundle: its process has not ended, and its agent knows these scripts.
local function can_serve(broker)
  local lease = redis.call("GET", LEASES .. broker)
  return lease and string.sub(lease, 1, 1) == "+"
end

-- Whether its agent is of an older version: told to give a bundle away, it would stop serving it and only
-- then learn that the store is closed to it.
local function outdated(broker)
  local lease = redis.call("GET", LEASES .. broker)
  return lease and string.match(lease, "^[1-9]")
end

-- False for a process that a later one of its name replaced: its requests are out of date.
local function speaks_for(request)
  return not request.session or redis.call("GET", LEASES .. request.actor) == "+" .. request.session
end

-- The namespace, start and end of a bundle; nil if the name is not one, or too long for the job to carry
-- (LONGEST_NAME in trimtab/model.py). Only in this form do ranges compare as text.
local function range_of(bundle)
  if #bundle > 2048 then
    return nil
  end
  local namespace, low, high =
    string.match(bundle, "^([^/%s]+/%S+)/0x([%da-f]+)_0x([%da-f]+)$")
  if low and #low == 8 and #high == 8 and low < high then
    return namespace, low, high
  end
end

-- How many bundles were placed on a broker since the hints. What somebody has spoiled counts as none: the
-- next hints delete it.
local function placed_on(broker)
  local count = redis.pcall("HGET", PLACED, broker)
  return type(count) == "string" and tonumber(count) or 0
end

-- A tally's value; what somebody has spoiled counts as none, as above. Callers read it the same way.
local function tallied(tally)
  local count = redis.pcall("HGET", TALLIES, tally)
  return type(count) == "string" and #count < 10 and tonumber(string.match(count, "^%d+$")) or 0
end

local function tallies_of(request, broker)
  return request.tallies and request.tallies[broker] or {}
end

-- Whether a bundle of the same namespace or group was placed there since the caller counted.
local function is_overtaken(request, broker)
  for tally, seen in pairs(tallies_of(request, broker)) do
    if seen >= 0 and tallied(tally) ~= seen then
      return true
    end
  end
end

-- The least loaded candidate that holds a lease, including bundles placed since the hints; or nil, and
-- whether one with a lease was overtaken.
local function best_of(request)
  local best, least, overtaken
  for _, candidate in ipairs(request.candidates) do
    local broker = candidate[1]
    local load = candidate[2] + placed_on(broker) * (request.each or 0)
    if (not least or load < least) and can_serve(broker) then
      if is_overtaken(request, broker) then
        overtaken = true
      else
        best, least = broker, load
      end
    end
  end
  return best, overtaken
end

local NEXT_OWNER = {
  keep = function(_, record) return record.owner end,
  ["keep-aim"] = function(request, record) return record.owner, request.broker end,
  take = function(request)
    if request.candidates then
      return (best_of(request))
    end
    return request.broker or request.actor
  end,
  destination = function(_, record) return record.destination end,
  nobody = function() return nil end,
}

local function broker_refusal(request, record, owner)
  if request.event == "claim" then
    if owner ~= request.actor then
      return REFUSED.NOT_OWNER
    end
  elseif request.event ~= "assign" and record.owner ~= request.actor then
    return REFUSED.NOT_OWNER
  end
  for _, command in ipairs(request.commands or {}) do
    if command[2] ~= owner and not request.candidates then
      return REFUSED.NOT_PERMITTED
    end
  end
end

-- A record, and its text if it exists. A damaged record affects only its own bundle.
local function record_of(bundle)
  local text = redis.call("HGET", OWNERSHIP, bundle)
  if not text then
    return { state = "Free", epoch = { 0, 0 } }
  end
  local record = readable_record(text)
  if not record then
    return { state = "unreadable", epoch = {} }
  end
  return record, text
end

-- The end of a bundle that starts at a place in the namespace; nil if it does not start there.
local function past(part, namespace, at)
  local of, from, to = range_of(part)
  return of == namespace and from == at and to or nil
end

-- Whether the children cover a part of the ring exactly once, and none of them exists already.
local function tile(namespace, low, high, children)
  local at = low
  for _, child in ipairs(children) do
    at = past(child, namespace, at)
    local known, text = record_of(child)
    if not at or known.state ~= "Deleted" and (text or known.state == "unreadable") then
      return false
    end
  end
  return at == high
end

-- Whether the request names what its step needs: a neighbour if two are merged, children if bundles end.
-- With the neighbour, one child has the whole range of both.
local function fits(request, before, after)
  local neighbour, children = request.neighbour, request.children or {}
  local ends = after == "Deleted"
  local merges = after == "Merging" or ends and before == "Merging"
  if merges ~= (neighbour ~= nil) or ends ~= (#children > 0) then
    return false
  end
  local namespace, low, high = range_of(request.bundle)
  if neighbour then
    high = past(neighbour[1], namespace, high)
    if not high or #children > 1 then
      return false
    end
  end
  return not ends or tile(namespace, low, high, children)
end

-- The nearest bundle of the namespace in the index, below (or above) a name: {low, high}. Skips other
-- names in between, such as bundles of longer namespaces.
local function nearest(namespace, command, from, bound)
  while true do
    local name = redis.call(command, BUNDLES, "(" .. from, bound, "LIMIT", 0, 1)[1]
    if not name then
      return nil
    end
    local of, low, high = range_of(name)
    if of == namespace then
      return { low, high }
    end
    from = name
  end
end

-- Whether a bundle that does not exist yet would overlap one that does. Bundles in the index do not
-- overlap, and are in ring order: checking its two neighbours is enough.
local function overlaps(bundle)
  local namespace, low, high = range_of(bundle)
  local first, last = namespace .. "/0x", namespace .. "/1"
  local before = nearest(namespace, "ZREVRANGEBYLEX", bundle, "[" .. first)
  local after = nearest(namespace, "ZRANGEBYLEX", bundle, "(" .. last)
  return before and before[2] > low or after and after[1] < high
end

-- How many owners in a row died soon after getting the bundle, including this one.
local function falls_of(record)
  return now - (record.since or 0) < SOON_MS and (record.falls or 0) + 1 or 0
end

-- The record after the request: {state, owner, destination, falls}, or nil; and why it is refused, if it
-- is. Both are returned if the bundle is quarantined instead.
local function judge(request, record, known)
  local expect = request.expect
  if not (by_broker and BROKER_EVENTS or JOB_EVENTS)[request.event] then
    return nil, REFUSED.NOT_PERMITTED
  end
  if record.state == "unreadable" then
    return nil, REFUSED.UNREADABLE
  end
  if not known and not range_of(request.bundle) then
    return nil, REFUSED.NOT_TILING
  end
  if not speaks_for(request) then
    return nil, REFUSED.NO_LEASE
  end
  if expect[1] ~= record.epoch[1] or expect[2] ~= record.epoch[2] then
    return nil, REFUSED.STALE_EPOCH
  end
  if expect[1] > tonumber(generation) then
    -- The open key was rolled back: the new epoch would be below the old one.
    return nil, REFUSED.STALE_EPOCH
  end
  local _, row = string.find(EFFECTS, ";" .. record.state .. " " .. request.event .. "=", 1, true)
  if not row then
    return nil, REFUSED.ILLEGAL
  end
  local state, rule, given = string.match(EFFECTS, "^(%a+) (%S+) ([^;]+)", row + 1)
  local falls = not STREAK_ENDS[request.event] and record.falls or 0
  if given ~= "nothing" and record.owner then
    local gone = not holds_lease(record.owner)
    local must_be = by_broker or given == "owner-gone"
    if must_be and not gone then
      return nil, REFUSED.OWNER_LIVES
    end
    if must_be and not vouched then
      return nil, REFUSED.CLOCK_IN_DOUBT
    end
    if gone then
      falls = falls_of(record)
    end
  end

  local owner, destination = NEXT_OWNER[rule](request, record)
  local gains = (rule == "take" or rule == "destination") and true or false
  if gains and not owner then
    if not request.candidates then
      return nil, REFUSED.NO_BROKER
    end
    local _, overtaken = best_of(request)
    return nil, overtaken and REFUSED.OVERTAKEN or REFUSED.NO_LEASE
  end
  if rule == "keep-aim" and destination == owner then
    return nil, REFUSED.SAME_BROKER
  end
  local refused = by_broker and broker_refusal(request, record, owner)
  if refused then
    return nil, refused
  end
  local must_act = not by_broker and string.sub(rule, 1, 4) == "keep" and state ~= "Owned"
  if must_act and owner and outdated(owner) then
    return nil, REFUSED.OUTDATED
  end
  local newcomer = gains and owner or destination
  if newcomer and not request.candidates and not can_serve(newcomer) then
    return nil, REFUSED.NO_LEASE
  end
  if (not known or record.state == "Deleted") and overlaps(request.bundle) then
    return nil, REFUSED.NOT_TILING
  end
  if falls >= MOST_FALLS and gains then
    return { state = "Quarantined", falls = falls }, REFUSED.QUARANTINED
  end
  return { state = state, owner = owner, destination = destination, falls = falls }
end

-- The same request for the neighbour above, with its record before and after; nil if it is refused, and
-- why.
local function upper_of(request, lower)
  local bundle, expect = request.neighbour[1], request.neighbour[2]
  local upper = { id = request.id, bundle = bundle, event = request.event, expect = expect,
    actor = request.actor, session = request.session }
  local record, text = record_of(bundle)
  local after, refused = judge(upper, record, text)
  if after and record.owner ~= lower.owner then
    return nil, REFUSED.NOT_OWNER
  end
  -- In another merge, or being split: it may have been kept and used for something else since.
  if after and request.event == "retire" and record.by ~= lower.by then
    return nil, REFUSED.ILLEGAL
  end
  return after and { request = upper, record = record, after = after }, refused
end

-- True from when the journal is full until everything it left out is in it again: a reader then finds a
-- change that was left out after all earlier ones, and before all later ones.
local leaves_out = redis.call("XLEN", JOURNAL) >= MOST_JOURNAL
  or redis.call("SCARD", UNJOURNALLED) > 0

-- The change of one record: {bundle, its text, epoch, event, owner before and after, whether it existed
-- before and exists after}.
local function change(request, bundle, known, record, counter, after)
  local epoch = string.format("[%s,%.0f]", generation, counter)
  local falls = (after.falls or 0) > 0 and string.format(',"falls":%.0f', after.falls) or ""
  local written = '{"state":"' .. after.state .. '","epoch":' .. epoch
    .. member("owner", after.owner) .. member("destination", after.destination)
    .. string.format(',"since":%.0f', now) .. member("by", request.id) .. falls .. "}"
  return { bundle = bundle, text = written, epoch = epoch, event = after.event or request.event,
    gave = record.owner, has = after.owner,
    stood = known and record.state ~= "Deleted", stands = after.state ~= "Deleted" }
end

-- An error, from a revoked right or a damaged key, ends a script but undoes nothing. So the records are
-- written in one call; before it come writes that do no harm without them, after it writes that are
-- repaired without them.
local function commit(changes)
  local records = {}
  for _, each in ipairs(changes) do
    if each.has and each.has ~= each.gave then
      redis.call("SADD", OWNED .. each.has, each.bundle)
    end
    if each.stands and not each.stood then
      redis.call("ZADD", BUNDLES, 0, each.bundle)
    end
    records[#records + 1] = each.bundle
    records[#records + 1] = each.text
  end
  redis.call("HSET", OWNERSHIP, unpack(records))
  for _, each in ipairs(changes) do
    if each.gave and each.has ~= each.gave then
      redis.call("SREM", OWNED .. each.gave, each.bundle)
    end
    if each.stood and not each.stands then
      redis.call("ZREM", BUNDLES, each.bundle)
    end
  end
end

-- With the first change come the commands that a broker issued with it: the job, which publishes its own,
-- learns of these only here.
local function journal(changes, commands)
  for i, each in ipairs(changes) do
    local left_out = leaves_out
    if not left_out then
      local entry = { "change", '{"cluster":' .. quoted(cluster) .. member("bundle", each.bundle)
        .. member("event", each.event) .. ',"record":' .. each.text .. "}" }
      if i == 1 and by_broker and #commands > 0 then
        local texts = {}
        for j, command in ipairs(commands) do
          texts[j] = command.text
        end
        entry[3], entry[4] = "commands", "[" .. table.concat(texts, ",") .. "]"
      end
      -- A stream whose ids a client has exhausted takes no more entries.
      local added = redis.pcall("XADD", JOURNAL, "*", unpack(entry))
      left_out = type(added) == "table" and added.err
    end
    if left_out then
      leaves_out = true
      redis.call("SADD", UNJOURNALLED, each.bundle)
    end
  end
end

local function born(request, owner, above)
  local children = {}
  for _, child in ipairs(request.children or {}) do
    local known, text = record_of(child)
    -- Also above the ended bundles: brokers use it to detect late commands, and a rebuild to find the
    -- current bundles.
    local counter = math.max(known.epoch[2], above) + 1
    local after = { state = "Owned", owner = owner }
    children[#children + 1] = change(request, child, text, known, counter, after)
  end
  return children
end

-- The commands that go out: {stream, text}.
local function stamped(request, after, epoch)
  local deadline = request.within and string.format(',"deadline":%.0f', now + request.within) or ""
  local commands = {}
  for _, command in ipairs(request.commands or {}) do
    if not request.candidates or command[2] == after.owner then
      local stamps = '{"epoch":' .. epoch .. ',"generation":' .. generation
        .. string.format(',"issuedAt":%.0f', now) .. deadline .. ","
      commands[#commands + 1] = { stream = KEYS[command[1]], text = stamps .. string.sub(command[3], 2) }
    end
  end
  return commands
end

local function send(request, after, commands)
  for _, command in ipairs(commands) do
    -- pcall, not call: if its broker has damaged the stream, the command just misses its deadline.
    redis.pcall("XADD", command.stream, "MAXLEN", "~", LONGEST_COMMAND_STREAM, "*",
      "command", command.text)
    -- pcall here too: callers of an older version lack this right.
    redis.pcall("EXPIRE", command.stream, COMMANDS_KEPT_S)
  end
  if request.candidates then
    -- pcall here too: the records are written, and a spoiled count heals with the next hints.
    redis.pcall("HINCRBY", PLACED, after.owner, 1)
    for tally in pairs(tallies_of(request, after.owner)) do
      redis.pcall("HINCRBY", TALLIES, tally, 1)
    end
  end
end

local function write(request, record, known, after, upper)
  local changes = { change(request, request.bundle, known, record, record.epoch[2] + 1, after) }
  local above = record.epoch[2]
  if upper then
    local counter = upper.record.epoch[2]
    above = math.max(above, counter)
    changes[2] = change(upper.request, upper.request.bundle, true, upper.record, counter + 1, upper.after)
  end
  if not after.event then
    for _, child in ipairs(born(request, record.owner, above)) do
      changes[#changes + 1] = child
    end
  end
  local commands = after.event and {} or stamped(request, after, changes[1].epoch)
  commit(changes)
  journal(changes, commands)
  if not after.event then
    send(request, after, commands)
  end
  return changes[1].text
end

-- The current records of the other bundles that a request names.
local function others(request)
  local names, found = { unpack(request.children or {}) }, {}
  names[#names + 1] = request.neighbour and request.neighbour[1]
  for _, name in ipairs(names) do
    local _, text = record_of(name)
    if text then
      found[#found + 1] = quoted(name) .. ":" .. quoted(text)
    end
  end
  return #found > 0 and ',"others":{' .. table.concat(found, ",") .. "}" or ""
end

-- Records as texts: cjson reads what is no JSON to others, and that would cost the whole answer.
local function outcome(request, refused, text)
  return '{"id":' .. quoted(request.id) .. member("bundle", request.bundle)
    .. (refused and ',"accepted":false,"reason":"' .. refused .. '"' or ',"accepted":true')
    .. member("record", text) .. others(request) .. "}"
end

local function apply(request)
  local record, text = record_of(request.bundle)
  if record.by == request.id then
    local fell = record.state == "Quarantined" and request.event ~= "quarantine"
    return outcome(request, fell and REFUSED.QUARANTINED, text)
  end
  local after, refused = judge(request, record, text)
  local upper
  if after and refused then
    after.event = "quarantine"
  elseif after and not fits(request, record.state, after.state) then
    after, refused = nil, REFUSED.NOT_TILING
  elseif after and request.neighbour then
    upper, refused = upper_of(request, record)
    after = upper and after
  end
  if after then
    text = write(request, record, text, after, upper)
  end
  return outcome(request, refused, text)
end

local outcomes = {}
for i, request in ipairs(cjson.decode(ARGV[5])) do
  outcomes[i] = apply(request)
end
local answer = "[" .. table.concat(outcomes, ",") .. "]"
if not by_broker then
  remember(#outcomes, answer)
end
return { "applied", answer }
