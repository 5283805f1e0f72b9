-- Whether a cluster is open to a job's generation. Shared by the scripts, which stand below it.

-- nil where it is; else the script's answer.
local function other_generation(open, caller)
  local generation = redis.call("HGET", open, "generation")
  if not generation then
    return { "closed", "no job has opened it" }
  end
  if tonumber(generation) > caller then
    return { "fenced", generation }
  end
  if tonumber(generation) < caller then
    return { "closed", "it is open to generation " .. generation }
  end
end
