-- Stores migrations as the job decided them, and tells brokers of each that has come further or has another check interval; or forgets them.
--
-- KEYS: open, migrations, sessions, the common prefix of leases, that of command streams.
-- ARGV: the job's generation; then for each migration its id, its JSON, and the JSON of the command without id,
--       broker and time. Without JSON it is forgotten, with what was counted of it.
-- Returns {"kept", how many there are, the server's time in ms, the brokers that were told as JSON: a list for each
--       migration}, {"fenced", the open generation, a higher one}, or {"closed", why}.
--
-- Rendered above from Python: COMMANDS_KEPT_S, MOST_COMMANDS, MAY_ENLIST (" state state "). From generation.lua:
-- other_generation. From stages.lua: stage_of.

local OPEN, MIGRATIONS, SESSIONS, LEASES, COMMANDS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local refused = other_generation(OPEN, tonumber(ARGV[1]))
if refused then
  return refused
end

-- What brokers act on: counts change all the time. Who waits for an hour between two looks learns of a shorter time.
local function gist(stage)
  return stage and table.concat({ stage.state, stage.wave, tostring(stage.check), tostring(stage.alone) }, " ")
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

local PREFIX = string.sub(OPEN, 1, -#"open" - 1)
local brokers

local clock = redis.call("TIME")
local now = string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))

-- Tell brokers that a migration has come further; returns which.
local function tell(id, migration, command)
  brokers = brokers or living()
  for _, broker in ipairs(brokers) do
    local name = table.concat({ id, migration.state, string.format("%.0f", migration.wave), now, broker }, "/")
    local told = '{"id":' .. cjson.encode(name) .. ',"broker":' .. cjson.encode(broker)
      .. ',"issuedAt":' .. now .. "," .. string.sub(command, 2)
    -- pcall: a broker whose stream is spoiled sees it at its next look.
    redis.pcall("XADD", COMMANDS .. broker, "MAXLEN", "~", MOST_COMMANDS, "*", "command", told)
    redis.pcall("EXPIRE", COMMANDS .. broker, COMMANDS_KEPT_S)
  end
  return brokers
end

-- cjson writes an empty list as an object.
local function listed(names)
  return #names > 0 and cjson.encode(names) or "[]"
end

local told = {}
for i = 2, #ARGV, 3 do
  local id, text, command = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local before, after = stage_of(redis.call("HGET", MIGRATIONS, id)), stage_of(text)
  if text == "" then
    redis.call("HDEL", MIGRATIONS, id)
    redis.call("DEL", PREFIX .. "migrated:" .. id)
  else
    redis.call("HSET", MIGRATIONS, id, text)
  end
  if not string.find(MAY_ENLIST, " " .. tostring(after and after.state) .. " ", 1, true) then
    redis.call("DEL", PREFIX .. "named:" .. id)
  end
  local further = after and gist(before) ~= gist(after)
  told[#told + 1] = listed(further and tell(id, after, command) or {})
end
return { "kept", tostring(redis.call("HLEN", MIGRATIONS)), now, "[" .. table.concat(told, ",") .. "]" }
