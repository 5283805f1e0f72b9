-- Stores a round's explanations, and the index from subjects to rounds, for the newest rounds.
--
-- KEYS: open, the index, the rounds, the common prefix of the rounds' keys.
-- ARGV: the job's generation; the round; its time in milliseconds; how many rounds to keep; for how
--       many seconds at most; then subjects and explanations in turn.
-- Returns {"kept", how many rounds}, {"fenced", the open generation, a higher one}, or {"closed", why}.
--
-- From generation.lua: other_generation.

-- Most rounds that the index lists for one subject.
local NAMED = 20

local OPEN, INDEX, ROUNDS, ROUND = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local number, at, most, seconds = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]

local refused = other_generation(OPEN, tonumber(ARGV[1]))
if refused then
  return refused
end

-- The rounds that the index lists for a subject, without one of them.
local function others(subject, round)
  local found = {}
  for each in string.gmatch(redis.call("HGET", INDEX, subject) or "", "%d+") do
    if each ~= round then
      found[#found + 1] = each
    end
  end
  return found
end

local function forget(round)
  -- The prefix has the same hash tag as the key, so it is on the same node.
  for _, subject in ipairs(redis.call("HKEYS", ROUND .. round)) do
    local left = others(subject, round)
    if #left > 0 then
      redis.call("HSET", INDEX, subject, table.concat(left, ","))
    else
      redis.call("HDEL", INDEX, subject)
    end
  end
  redis.call("DEL", ROUND .. round)
  redis.call("ZREM", ROUNDS, round)
end

-- After a new or older checkpoint, another round may have this number.
forget(number)
for i = 6, #ARGV, 2 do
  local subject = ARGV[i]
  local rounds = others(subject, number)
  table.insert(rounds, 1, number)
  redis.call("HSET", ROUND .. number, subject, ARGV[i + 1])
  redis.call("HSET", INDEX, subject, table.concat(rounds, ",", 1, math.min(#rounds, NAMED)))
end
redis.call("ZADD", ROUNDS, at, number)
for _, round in ipairs(redis.call("ZRANGE", ROUNDS, 0, -most - 1)) do
  forget(round)
end
for _, key in ipairs({ INDEX, ROUNDS, ROUND .. number }) do
  redis.call("EXPIRE", key, seconds)
end
return { "kept", tostring(redis.call("ZCARD", ROUNDS)) }
