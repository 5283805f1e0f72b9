-- Whether a job may change a cluster now. Shared by the scripts, which stand below it.
--
-- From generation.lua: other_generation. From history.lua: server, history_of. From marks.lua: are_marked.

-- nil where the cluster is open to this generation on this history, with its records; else the script's answer.
local function barred(open, ownership, bundles, caller)
  local refused = other_generation(open, caller)
  if refused then
    return refused
  end
  local opened = redis.call("HMGET", open, "replid", "run_id")
  if opened[2] or opened[1] ~= history_of(server()) then
    return { "closed", "it is not open on this history" }
  end
  if not are_marked(ownership, bundles) then
    return { "closed", NOT_MARKED }
  end
end
