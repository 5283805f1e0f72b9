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

-- Whether a request concerns one bundle, which goes on with its range: there is nothing to fit.
local function stands_alone(request, after)
  return not request.neighbour and not request.children and after.state ~= "Deleted" and after.state ~= "Merging"
end

-- The current records of the other bundles that a request names.
local function others(request)
  if not request.children and not request.neighbour then
    return ""
  end
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

-- Records as texts: cjson reads what is no JSON to others, and that would cost the whole answer. Their
-- slashes stay escaped: these texts are long, and each is different.
local function outcome(request, refused, text)
  return '{"id":' .. quoted(request.id) .. member("bundle", request.bundle)
    .. (refused and ',"accepted":false,"reason":"' .. refused .. '"' or ',"accepted":true')
    .. (text and ',"record":' .. cjson.encode(text) or "") .. others(request) .. "}"
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
  elseif after and not stands_alone(request, after) and not fits(request, record.state, after.state) then
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
for i, request in ipairs(requests) do
  outcomes[i] = apply(request)
end
local answer = "[" .. table.concat(outcomes, ",") .. "]"
if not by_broker then
  remember(#outcomes, answer)
end
return { "applied", answer }
