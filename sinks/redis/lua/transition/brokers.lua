-- What the leases say of brokers and their processes.

local leases = {}

-- A lease's text, read once a run; false without one, and "?" where somebody has spoiled its key.
local function lease_of(broker)
  local lease = leases[broker]
  if lease == nil then
    lease = redis.pcall("GET", LEASES .. broker)
    if type(lease) == "table" then
      lease = "?"
    end
    leases[broker] = lease
  end
  return lease
end

-- Also where somebody deleted its lease: it serves until that would have ended.
local function holds_lease(broker)
  if lease_of(broker) then
    return true
  end
  local _, rest = noted_session(PREFIX .. "sessions", broker, now)
  return rest ~= nil
end

-- Whether it may get a bundle: its process has not ended, and its agent knows these scripts.
local function can_serve(broker)
  local lease = lease_of(broker)
  return lease and string.sub(lease, 1, 1) == "+"
end

-- Whether its agent is of an older version: told to give a bundle away, it would stop serving it and only
-- then learn that the store is closed to it.
local function outdated(broker)
  local lease = lease_of(broker)
  return lease and string.match(lease, "^[1-9]")
end

-- False for a process that a later one of its name replaced: its requests are out of date.
local function speaks_for(request)
  return not request.session or lease_of(request.actor) == "+" .. request.session
end
