-- Whether an open cluster still has its records, and their index. Shared by the scripts, which stand below it.
--
-- Both keys hold a mark from when a rebuild begins. Nothing else writes it, so a key that was deleted or
-- evicted since then lacks it, also once a later request has created it again.
--
-- Rendered above from Python: MARK.

-- pcall: a key of another type lacks it too; what then needs the key says so.
local function are_marked(ownership, bundles)
  local records = redis.pcall("HGET", ownership, MARK)
  local index = redis.pcall("ZRANGEBYLEX", bundles, "[" .. MARK, "[" .. MARK)
  return type(records) == "string" and index[1] == MARK
end

local NOT_MARKED = "its records, or their index, are gone"

local function mark(ownership, bundles)
  redis.call("HSET", ownership, MARK, "1")
  redis.call("ZADD", bundles, 0, MARK)
end
