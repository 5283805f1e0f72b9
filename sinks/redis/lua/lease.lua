-- Renews a broker's lease, gives it up, or takes it over from an older process of the same name.
--
-- KEYS: open, lease, successor, sessions, clock, replicas, the assertions' common prefix, ownership,
--       bundles.
-- ARGV: session (ms, larger for a process that started later); for how long (ms), 0 to give it up,
--       -1 to leave the rest of it to the next process of this name; the broker; its assertion of the
--       records that it saw, as JSON, or ""; how long it has asked for the lease, by its own clock (ms).
-- Returns {status, detail, ms, this server's time (ms), the history of its data, how much of a lease
-- from another history must be left (ms) if it is to continue here}:
--   held      detail: the session before, or ""; ms granted
--   asserted  the same while the store is closed
--   assert    detail: this history; it is closed, and this broker has sent no assertion
--   waiting   detail: the older session that has ms left; it cannot renew any more. Or "": the last
--             process of this name did not report its end, and this clock may have jumped: ms to wait
--   superseded  detail: the later session
--   isolated  detail: how many replicas have acknowledged lately, of how many
--   replica   this server is not a master
--   outdated  a job of an older version has opened the store: no lease for a process without one
--   released  detail: the session before, or ""
--
-- Rendered above from Python: LONGEST_LEASE_MS, KEPT_MS. From history.lua: server, history_of. From
-- replicas.lua: REPLICA_WAIT_MS, short_of_replicas. From marks.lua: are_marked. From sessions.lua: noted_session.

local OPEN, LEASE, SUCCESSOR, SESSIONS, CLOCK = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local REPLICAS, ASSERTIONS, OWNERSHIP, BUNDLES = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local session, asked, broker, said = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
-- The name is reserved until this lease ends, for a process that has not started yet.
local NO_SESSION = "0"
-- A waiting process asks again within two seconds.
local TAKE_OVER_MS = 3000
-- Agents of older versions also read this as a number; their own leases lack the sign: they get no bundles.
local MINE = "+" .. session

local clock = redis.call("TIME")
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
local now = string.format("%.0f", now_ms)
local here = server()
local history = history_of(here)
local opened = redis.call("HMGET", OPEN, "replid", "replicas", "replicas_set", "run_id", "replicated", "lease_ms",
  "rebuild_on")
local was_replicated = opened[5]
local function session_of(lease)
  return string.match(lease or "", "%d*$")
end
local function answer(status, detail, ms)
  if not was_replicated then
    -- The job's calls may have seen no replica, brokers' requests one.
    local noted = redis.call("HMGET", REPLICAS, "online", "before")
    was_replicated = (tonumber(noted[1] or "") or 0) > 0 or (tonumber(noted[2] or "") or 0) > 0
  end
  -- On a master that was left behind, the old lease may be given up before that master notices.
  local must_have_left = was_replicated and string.format("%.0f", REPLICA_WAIT_MS) or "0"
  return { status, detail, string.format("%.0f", ms), now, history or "", must_have_left }
end

local before = redis.call("GET", LEASE)
local noted, rest = noted_session(SESSIONS, broker, now_ms)
-- The key was deleted, or written by a process that could not see who was noted.
if (not before or before == MINE) and rest and noted ~= session then
  before = "+" .. noted
end
local successor = redis.call("GET", SUCCESSOR)
if asked <= 0 then
  if before == MINE or noted == session then
    redis.call("HDEL", SESSIONS, broker)
  end
  if before == MINE then
    if asked < 0 then
      redis.call("SET", LEASE, NO_SESSION, "KEEPTTL")
    else
      -- A waiting process must see that this one ended, and did not only let its lease expire.
      redis.call("SET", LEASE, NO_SESSION, "PX", successor and 1000 or 1)
    end
  end
  return answer("released", session_of(before), 0)
end
-- The session that waits for an older one, and when the older one's lease ends.
local waits, over = string.match(successor or "", "^(%d+) (%d+)$")
for _, later in ipairs({ before or NO_SESSION, waits or NO_SESSION }) do
  if tonumber(later) > tonumber(session) then
    return answer("superseded", session_of(later), 0)
  end
end

if not history then
  return answer("replica", "", 0)
end
local looked_at = opened[1] == history or opened[7] == history
local isolated = short_of_replicas(REPLICAS, here, history, opened[2], opened[3], looked_at)
if isolated then
  return answer("isolated", isolated, 0)
end

local function waits_until(ms)
  redis.call("SET", SUCCESSOR, string.format("%s %.0f", session, ms), "PX", 2 * LONGEST_LEASE_MS)
end

if before and before ~= MINE and before ~= NO_SESSION then
  -- An older process of this name may serve until its lease ends, and must not renew it.
  if waits ~= session then
    local left = math.max(redis.call("PTTL", LEASE), rest or 0)
    over = now_ms + (left > 0 and left or LONGEST_LEASE_MS)
  end
  -- No lease is longer; it only seems so if the clock went back.
  over = math.min(tonumber(over), now_ms + LONGEST_LEASE_MS)
  local left = over - now_ms
  if left > 0 then
    waits_until(over)
    -- The name counts as alive a little longer: its bundles wait for the waiting process.
    redis.call("SET", LEASE, before, "PX", left + TAKE_OVER_MS)
    return answer("waiting", session_of(before), left)
  end
end

-- The job's note is valid for a second. The key lasts longer if the clock went back.
local function vouched()
  local noted = tonumber(redis.call("GET", CLOCK) or "")
  return noted and noted <= now_ms and now_ms - noted <= 1000
end

-- Another process of this name that did not report its end: its lease may only seem to have ended. It may
-- also have the larger session: one whose machine's clock was ahead, and that was killed.
local last
if not before or before == MINE then
  last = noted
elseif before ~= NO_SESSION then
  last = session_of(before)
end
local asked_for = tonumber(ARGV[5])
if last and last ~= session and asked_for < LONGEST_LEASE_MS and not vouched() then
  local left = LONGEST_LEASE_MS - asked_for
  waits_until(now_ms)
  if before then
    redis.call("SET", LEASE, before, "PX", left + TAKE_OVER_MS)
  end
  return answer("waiting", "", left)
end

if opened[4] and before ~= MINE then
  return answer("outdated", "", 0)
end
local status = "held"
if opened[1] ~= history or opened[4] or not are_marked(OWNERSHIP, BUNDLES) then
  -- The lease of a broker without an assertion must expire before the records are trusted again.
  local key = ASSERTIONS .. history .. ":" .. broker
  if said ~= "" then
    redis.call("SET", key, said, "PX", KEPT_MS)
  elseif redis.call("EXISTS", key) == 0 then
    return answer("assert", history, 0)
  end
  status = "asserted"
end
local granted = math.min(asked, tonumber(opened[6]) or asked, LONGEST_LEASE_MS)
redis.call("SET", LEASE, MINE, "PX", granted)
redis.call("HSET", SESSIONS, broker, string.format("%s %.0f", session, now_ms + granted))
return answer(status, session_of(before), granted)
