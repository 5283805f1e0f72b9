-- The choice among the candidates of a lookup, which sees what was placed since they were ranked.

local PLACED, TALLIES = PREFIX .. "placed", PREFIX .. "tallies"

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
