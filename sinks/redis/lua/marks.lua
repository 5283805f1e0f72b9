-- Whether an open cluster still has its records, and their index. Shared by the scripts, which stand below it.
--
-- Both keys hold a mark from when a rebuild begins. Nothing else writes it, so a key that was deleted or
-- evicted since then lacks it, also once a later request has created it again.
--
-- Rendered above from Python: MARK.

-- pcall: a key of another type lacks it too; what then needs the key says so.
local function is_index_marked(bundles)
  return type(redis.pcall("ZSCORE", bundles, MARK)) == "string"
end

local function are_marked(ownership, bundles)
  return type(redis.pcall("HGET", ownership, MARK)) == "string" and is_index_marked(bundles)
end

local NOT_MARKED = "its records, or their index, are gone"

local function mark(ownership, bundles)
  redis.call("HSET", ownership, MARK, "1")
  redis.call("ZADD", bundles, 0, MARK)
end
