-- Stores migrations as the job decided them, and tells brokers of each that has come further.
--
-- KEYS: open, migrations, sessions, the common prefix of leases, that of command streams.
-- ARGV: the job's generation; then for each migration its id, its JSON, and the JSON of the command without its
--       broker.
-- Returns {"kept", how many commands went out}, {"fenced", the open generation, a higher one}, or {"closed", why}.
--
-- Rendered above from Python: COMMANDS_KEPT_S, MOST_COMMANDS. From generation.lua: other_generation.

local OPEN, MIGRATIONS, SESSIONS, LEASES, COMMANDS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local refused = other_generation(OPEN, tonumber(ARGV[1]))
if refused then
  return refused
end

-- What brokers act on: counts change all the time.
local function gist(text)
  local decoded, migration = pcall(cjson.decode, text or "")
  if decoded and type(migration) == "table" then
    return tostring(migration.state) .. " " .. tostring(migration.wave)
  end
end

-- Brokers that have a lease: the others look when they get one.
local function living()
  local found = {}
  for _, broker in ipairs(redis.call("HKEYS", SESSIONS)) do
    if redis.call("EXISTS", LEASES .. broker) == 1 then
      found[#found + 1] = broker
    end
  end
  table.sort(found)
  return found
end

local sent, brokers = 0, nil
for i = 2, #ARGV, 3 do
  local id, text, command = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local before = gist(redis.call("HGET", MIGRATIONS, id))
  redis.call("HSET", MIGRATIONS, id, text)
  if before ~= gist(text) then
    brokers = brokers or living()
    for _, broker in ipairs(brokers) do
      local told = '{"broker":' .. cjson.encode(broker) .. "," .. string.sub(command, 2)
      -- pcall: a broker whose stream is spoiled sees it at its next look.
      redis.pcall("XADD", COMMANDS .. broker, "MAXLEN", "~", MOST_COMMANDS, "*", "command", told)
      redis.pcall("EXPIRE", COMMANDS .. broker, COMMANDS_KEPT_S)
      sent = sent + 1
    end
  end
end
return { "kept", tostring(sent) }
