-- Whether a bundle's range is free: no other bundle in the index covers a part of it.

-- The nearest bundle of the namespace in the index, below (or above) a name: {low, high}. Skips other
-- names in between, such as bundles of longer namespaces.
local function nearest(namespace, command, from, bound)
  while true do
    local name = redis.call(command, BUNDLES, "(" .. from, bound, "LIMIT", 0, 1)[1]
    if not name then
      return nil
    end
    local of, low, high = range_of(name)
    if of == namespace then
      return { low, high }
    end
    from = name
  end
end

-- Whether a bundle that does not exist yet would overlap one that does. Bundles in the index do not
-- overlap, and are in ring order: checking its two neighbours is enough.
local function overlaps(bundle)
  local namespace, low, high = range_of(bundle)
  local first, last = namespace .. "/0x", namespace .. "/1"
  local before = nearest(namespace, "ZREVRANGEBYLEX", bundle, "[" .. first)
  local after = nearest(namespace, "ZRANGEBYLEX", bundle, "(" .. last)
  return before and before[2] > low or after and after[1] < high
end
