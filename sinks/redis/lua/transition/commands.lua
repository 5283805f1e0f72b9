-- The commands that go out with a change, and the counts of what lookups placed.

-- A broker this far behind has missed the deadlines of the commands that are trimmed.
local LONGEST_COMMAND_STREAM = 10000
-- A command is useless after minutes: a stream without one for so long belongs to a broker that is gone.
-- It is kept for so long, or half as long, after its last command.
local COMMANDS_KEPT_S = 86400

-- The commands that go out: {stream, text}.
local function stamped(request, after, epoch)
  local deadline = request.within and string.format(',"deadline":%.0f', now + request.within) or ""
  local commands = {}
  for _, command in ipairs(request.commands or {}) do
    if not request.candidates or command[1] == after.owner then
      local stamps = '{"epoch":' .. epoch .. ',"generation":' .. generation
        .. ',"issuedAt":' .. now_text .. deadline .. ","
      commands[#commands + 1] = { stream = COMMANDS .. command[1], text = stamps .. string.sub(command[2], 2) }
    end
  end
  return commands
end

local function send(request, after, commands)
  for _, command in ipairs(commands) do
    -- pcall, not call: if its broker has damaged the stream, the command just misses its deadline.
    redis.pcall("XADD", command.stream, "MAXLEN", "~", LONGEST_COMMAND_STREAM, "*",
      "command", command.text)
    -- A look costs a sixth of a write. pcall here too: callers of an older version lack these rights.
    local left = redis.pcall("PTTL", command.stream)
    if type(left) ~= "number" or left < COMMANDS_KEPT_S * 500 then
      redis.pcall("EXPIRE", command.stream, COMMANDS_KEPT_S)
    end
  end
  if request.candidates then
    -- pcall here too: the records are written, and a spoiled count heals with the next hints.
    redis.pcall("HINCRBY", PREFIX .. "placed", after.owner, 1)
    for tally in pairs(request.tallies and request.tallies[after.owner] or {}) do
      redis.pcall("HINCRBY", PREFIX .. "tallies", tally, 1)
    end
  end
end
