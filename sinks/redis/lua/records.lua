-- Reading a record as it stands in Redis. Shared by the scripts, which stand below it.

local function is_absent_or(value, kind)
  return value == nil or type(value) == kind
end

-- nil where it is none, or somebody has damaged it: what a script does with its members must not fail.
local function readable_record(text)
  local decoded, record = pcall(cjson.decode, text or "")
  local epoch = decoded and type(record) == "table" and record.epoch
  if type(epoch) ~= "table" or type(epoch[1]) ~= "number" or type(epoch[2]) ~= "number" then
    return nil
  end
  -- Python reads null as nobody.
  if record.owner == cjson.null then
    record.owner = nil
  end
  if record.destination == cjson.null then
    record.destination = nil
  end
  local sound = type(record.state) == "string"
    and is_absent_or(record.owner, "string") and is_absent_or(record.destination, "string")
    and is_absent_or(record.since, "number") and is_absent_or(record.falls, "number")
  return sound and record or nil
end
