-- The step that a record takes, or the rule that refuses it.

-- The owner by a rule of the table, and the destination.
local function next_owner(rule, request, record)
  if rule == "keep" then
    return record.owner
  elseif rule == "keep-aim" then
    return record.owner, request.broker
  elseif rule == "destination" then
    return record.destination
  elseif rule == "take" then
    if request.candidates then
      return (best_of(request))
    end
    return request.broker or request.actor
  end
end

local function broker_refusal(request, record, owner)
  if request.event == "claim" then
    if owner ~= request.actor then
      return REFUSED.NOT_OWNER
    end
  elseif request.event ~= "assign" and record.owner ~= request.actor then
    return REFUSED.NOT_OWNER
  end
  for _, command in ipairs(request.commands or {}) do
    if command[1] ~= owner and not request.candidates then
      return REFUSED.NOT_PERMITTED
    end
  end
end

local function is_among(event, events)
  return string.find(events, " " .. event .. " ", 1, true)
end

-- How many owners in a row died soon after getting the bundle, including this one.
local function falls_of(record)
  return now - (record.since or 0) < SOON_MS and (record.falls or 0) + 1 or 0
end

-- The record after the request: {state, owner, destination, falls}, or nil; and why it is refused, if it
-- is. Both are returned if the bundle is quarantined instead.
local function judge(request, record, known)
  local expect = request.expect
  if not is_among(request.event, by_broker and BROKER_EVENTS or JOB_EVENTS) then
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
  local falls = not is_among(request.event, STREAK_ENDS) and record.falls or 0
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

  local owner, destination = next_owner(rule, request, record)
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
