-- Applies a list of transitions to one cluster's ownership records, all in this one step.
--
-- KEYS: open, ownership, journal, applied, then every command stream a transition may append to.
-- ARGV: cluster; the job's generation, query id and batch ("", "", "" from a broker); the transitions
--       as JSON: {id, bundle, event, expect, broker, actor, within, commands, children}, each command
--       being {index of its stream in KEYS, its broker, its JSON without the stamps}.
-- Returns {status, detail}: applied or repeated with the outcomes as JSON; closed with why; fenced
--       with the open generation; older with the batch that was applied last.
--
-- Rendered above from Python: EFFECTS ("state event" to "state owner-rule"), BROKER_EVENTS, REFUSED.
-- JSON is put together by hand: cjson writes an empty list as {} and long integers as 1.7e+12.

-- A broker this far behind has missed the deadline of what is dropped.
local LONGEST_COMMAND_STREAM = 10000

local OPEN, OWNERSHIP, JOURNAL, APPLIED = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local cluster, caller, query, batch = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local by_broker = caller == ""

local opened = redis.call("HMGET", OPEN, "generation", "run_id")
local generation, run_id = opened[1], opened[2]
if not run_id then
  return { "closed", "no job has opened it" }
end
if not string.find(redis.call("INFO", "server"), "run_id:" .. run_id .. "\r", 1, true) then
  return { "closed", "its server restarted" }
end
if not by_broker then
  -- A caller above the open generation has claimed but not opened yet.
  if tonumber(caller) > tonumber(generation) then
    return { "closed", "it is open to generation " .. generation }
  end
  if tonumber(caller) < tonumber(generation) then
    return { "fenced", generation }
  end
  local stored = redis.call("HGET", APPLIED, query)
  if stored then
    local last, outcomes = string.match(stored, "^(%d+) (.*)$")
    if tonumber(last) == tonumber(batch) then
      return { "repeated", outcomes }
    end
    if tonumber(last) > tonumber(batch) then
      return { "older", last }
    end
  end
end

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function quoted(text)
  -- cjson escapes every slash, which is legal and hard to read.
  return (string.gsub(cjson.encode(text), "\\/", "/"))
end

local function member(name, text)
  return text and ',"' .. name .. '":' .. quoted(text) or ""
end

local NEXT_OWNER = {
  keep = function(_, record) return record.owner end,
  ["keep-aim"] = function(request, record) return record.owner, request.broker end,
  take = function(request) return request.broker or request.actor end,
  destination = function(_, record) return record.destination end,
  nobody = function() return nil end,
}

local function commands_may_go(request, record)
  for _, command in ipairs(request.commands or {}) do
    if command[2] ~= record.destination then
      return false
    end
  end
  return true
end

local function broker_refusal(request, record, rule, owner)
  local asks_for = rule == "take" and owner or record.owner
  if asks_for ~= request.actor then
    return REFUSED.NOT_OWNER
  end
  return not commands_may_go(request, record) and REFUSED.NOT_PERMITTED
end

local function record_of(bundle)
  local text = redis.call("HGET", OWNERSHIP, bundle)
  return text and cjson.decode(text) or { state = "Free", epoch = { 0, 0 } }, text
end

-- Whether the children cover the bundle exactly once, and none of them stands already.
local function tile(bundle, children)
  local namespace, low, high = string.match(bundle, "^(.+)/(0x%x+)_(0x%x+)$")
  local at = low
  for _, child in ipairs(children) do
    local of, from, to = string.match(child, "^(.+)/(0x%x+)_(0x%x+)$")
    -- Of one width and in lower case, hexadecimal compares as text.
    if of ~= namespace or from ~= at or #to ~= #from or to <= from then
      return false
    end
    local _, text = record_of(child)
    if text and cjson.decode(text).state ~= "Deleted" then
      return false
    end
    at = to
  end
  return at == high
end

-- What the request makes of the record: {state, owner, destination}, or nil and why not.
local function judge(request, record)
  local expect = request.expect
  if (BROKER_EVENTS[request.event] == true) ~= by_broker then
    return nil, REFUSED.NOT_PERMITTED
  end
  if expect[1] ~= record.epoch[1] or expect[2] ~= record.epoch[2] then
    return nil, REFUSED.STALE_EPOCH
  end
  if expect[1] > tonumber(generation) then
    -- The open key was rolled back: the new epoch would be below the old one.
    return nil, REFUSED.STALE_EPOCH
  end
  local effect = EFFECTS[record.state .. " " .. request.event]
  if not effect then
    return nil, REFUSED.ILLEGAL
  end
  local state, rule = string.match(effect, "(%a+) (%S+)")
  local owner, destination = NEXT_OWNER[rule](request, record)
  if (rule == "take" or rule == "destination") and not owner then
    return nil, REFUSED.NO_BROKER
  end
  if rule == "keep-aim" and destination == owner then
    return nil, REFUSED.SAME_BROKER
  end
  local refused = by_broker and broker_refusal(request, record, rule, owner)
  if refused then
    return nil, refused
  end
  local children = request.children or {}
  local divides = record.state == "Splitting" and state == "Deleted"
  if divides ~= (#children > 0) or divides and not tile(request.bundle, children) then
    return nil, REFUSED.NOT_TILING
  end
  return { state = state, owner = owner, destination = destination }
end

local function put(request, bundle, counter, after)
  local epoch = string.format("[%s,%.0f]", generation, counter)
  local written = '{"state":"' .. after.state .. '","epoch":' .. epoch
    .. member("owner", after.owner) .. member("destination", after.destination)
    .. string.format(',"since":%.0f', now) .. member("by", request.id) .. "}"

  redis.call("HSET", OWNERSHIP, bundle, written)
  redis.call("XADD", JOURNAL, "*", "change", '{"cluster":' .. quoted(cluster)
    .. member("bundle", bundle) .. member("event", request.event)
    .. ',"record":' .. written .. "}")
  return written, epoch
end

local function write(request, record, after)
  local written, epoch = put(request, request.bundle, record.epoch[2] + 1, after)
  for _, child in ipairs(request.children or {}) do
    local known = record_of(child)
    -- Above the parent's as well: a broker tells late commands by it.
    local counter = math.max(known.epoch[2], record.epoch[2]) + 1
    put(request, child, counter, { state = "Owned", owner = record.owner })
  end

  local deadline = request.within and string.format(',"deadline":%.0f', now + request.within) or ""
  for _, command in ipairs(request.commands or {}) do
    local stamps = '{"epoch":' .. epoch .. ',"generation":' .. generation
      .. string.format(',"issuedAt":%.0f', now) .. deadline .. ","
    redis.call("XADD", KEYS[command[1]], "MAXLEN", "~", LONGEST_COMMAND_STREAM, "*",
      "command", stamps .. string.sub(command[3], 2))
  end
  return written
end

local function outcome(request, refused, text)
  return '{"id":' .. quoted(request.id) .. member("bundle", request.bundle)
    .. (refused and ',"accepted":false,"reason":"' .. refused .. '"' or ',"accepted":true')
    .. (text and ',"record":' .. text or "") .. "}"
end

local function apply(request)
  local record, text = record_of(request.bundle)
  if record.by == request.id then
    return outcome(request, nil, text)
  end
  local after, refused = judge(request, record)
  if refused then
    return outcome(request, refused, text)
  end
  return outcome(request, nil, write(request, record, after))
end

local outcomes = {}
for i, request in ipairs(cjson.decode(ARGV[5])) do
  outcomes[i] = apply(request)
end
local answer = "[" .. table.concat(outcomes, ",") .. "]"
if not by_broker then
  redis.call("HSET", APPLIED, query, batch .. " " .. answer)
end
return { "applied", answer }
