-- What the leases say of brokers and their processes.

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
