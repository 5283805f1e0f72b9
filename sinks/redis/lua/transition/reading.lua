-- The records' texts as they stand, each read once a run; a write changes them here too.

-- How many are read together: unpack fails on long lists, and a broker's list has any length.
local MOST_TOGETHER = 1000

-- Bundle to text; false where there is no record, nil where it was not read.
local texts = {}

-- Read the records that the requests are about; false if they have lost their mark.
local function read_records()
  local names, last = { MARK }, math.min(#requests, MOST_TOGETHER) + 1
  for i = 2, last do
    names[i] = requests[i - 1].bundle
  end
  -- pcall: a key of another type lacks the mark too.
  local found = redis.pcall("HMGET", OWNERSHIP, unpack(names, 1, last))
  if not found[1] then
    return false
  end
  for i = 2, last do
    texts[names[i]] = found[i]
  end
  return true
end

local function text_of(bundle)
  local text = texts[bundle]
  if text == nil then
    text = redis.call("HGET", OWNERSHIP, bundle)
    texts[bundle] = text
  end
  return text
end
