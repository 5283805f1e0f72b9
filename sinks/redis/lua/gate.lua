-- Whether a job may change a cluster now. Shared by the scripts, which stand below it.
--
-- From history.lua: server, history_of. From marks.lua: are_marked.

-- nil where the cluster is open to this generation on this history, with its records; else the script's answer.
local function barred(open, ownership, bundles, caller)
  local opened = redis.call("HMGET", open, "generation", "replid", "run_id")
  local generation = tonumber(opened[1] or 0)
  if generation > caller then
    return { "fenced", opened[1] }
  end
  if generation < caller or opened[3] or opened[2] ~= history_of(server()) then
    return { "closed", "it is not open to this generation" }
  end
  if not are_marked(ownership, bundles) then
    return { "closed", NOT_MARKED }
  end
end
