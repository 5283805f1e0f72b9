-- Reading a record as it stands in Redis. Shared by the scripts, which stand below it.

-- nil where it is none, or somebody has damaged it: what a script does with its members must not fail.
local function readable_record(text)
  local decoded, record = pcall(cjson.decode, text or "")
  local epoch = decoded and type(record) == "table" and record.epoch
  if type(epoch) ~= "table" or type(epoch[1]) ~= "number" or type(epoch[2]) ~= "number" then
    return nil
  end
  for _, name in ipairs({ "owner", "destination" }) do
    -- Python reads null as nobody.
    if record[name] == cjson.null then
      record[name] = nil
    end
  end
  local function is(name, kind)
    return record[name] == nil or type(record[name]) == kind
  end
  local sound = record.state and is("state", "string") and is("owner", "string")
    and is("destination", "string") and is("since", "number") and is("falls", "number")
  return sound and record or nil
end
