-- Whether the caller may change anything here now, and what time it is.

local opened = redis.call("HMGET", OPEN, "replid", "replicas", "replicas_set", "run_id", "generation")
local history, generation = opened[1], opened[5]
if opened[4] then
  return { "closed", "a job of an older version has opened it: upgrade the job first" }
end
if not history then
  return { "closed", "no job has opened it" }
end
local here = server()
if not is_of(here, history) then
  return { "closed", "its server restarted, or is not the master that it was" }
end
if not read_records() or not is_index_marked(BUNDLES) then
  return { "closed", NOT_MARKED }
end
-- With its first replica a master starts a backlog, and with that another history.
local never_had_replicas = (tonumber(opened[2]) or 0) == 0
  and string.find(here, "repl_backlog_active:0", 1, true) and redis.call("EXISTS", REPLICAS) == 0
local isolated = not never_had_replicas
  and short_of_replicas(REPLICAS, here, history, opened[2], opened[3], true)
if isolated then
  return { "isolated", isolated }
end
if not by_broker then
  -- A caller above the open generation has claimed it but not opened the store yet.
  if page.generation > tonumber(generation) then
    return { "closed", "it is open to generation " .. generation }
  end
  if page.generation < tonumber(generation) then
    return { "fenced", generation }
  end
  local status, detail = known_page()
  if status then
    return { status, detail }
  end
end

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local now_text = string.format("%.0f", now)
-- An expired lease proves that time has passed only if this clock did not jump.
local vouched = math.abs(now - (tonumber(call.now) or math.huge)) <= CLOCK_MARGIN_MS
