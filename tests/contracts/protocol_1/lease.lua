-- Renews a broker's lease, or gives it up.
--
-- KEYS: open, lease, the assertions' common beginning.
-- ARGV: session (ms, larger for a process that started later); for how long (ms), 0 to give it up;
--       the broker.
-- Returns {"held", the session before or "", ms granted}; {"asserted", …} the same while the store is
--       closed; {"assert", run_id} where the store is closed and this broker has not said what it
--       saw; {"superseded", the later session}; {"released", …}.

local session, asked = ARGV[1], tonumber(ARGV[2])
local before = redis.call("GET", KEYS[2])
if before and tonumber(before) > tonumber(session) then
  return { "superseded", before, "0" }
end
if asked == 0 then
  if before then
    redis.call("SET", KEYS[2], session, "PX", 1)
  end
  return { "released", before or "", "0" }
end

local opened = redis.call("HMGET", KEYS[1], "run_id", "lease_ms")
local run_id = string.match(redis.call("INFO", "server"), "run_id:(%x+)")
local status = "held"
if opened[1] ~= run_id then
  -- A lease of a broker that has said nothing must run out before the records are believed again.
  if redis.call("EXISTS", KEYS[3] .. run_id .. ":" .. ARGV[3]) == 0 then
    return { "assert", run_id, "0" }
  end
  status = "asserted"
end
local granted = math.min(asked, tonumber(opened[2]) or asked)
redis.call("SET", KEYS[2], session, "PX", granted)
return { status, before or "", string.format("%.0f", granted) }
