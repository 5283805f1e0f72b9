-- Records, and the ranges that the names of bundles say: the bundles of a namespace tile its ring.

-- The namespace, start and end of a bundle; nil if the name is not one, or too long for the job to carry
-- (LONGEST_NAME in trimtab/model.py). Only in this form do ranges compare as text. Neither blanks nor
-- control characters: names are shown on terminals.
local function range_of(bundle)
  if #bundle > 2048 then
    return nil
  end
  local namespace, low, high =
    string.match(bundle, "^([^/%s%c]+/[^%s%c]+)/0x([%da-f]+)_0x([%da-f]+)$")
  if low and #low == 8 and #high == 8 and low < high then
    return namespace, low, high
  end
end

-- A record, and its text if it exists. A damaged record affects only its own bundle.
local function record_of(bundle)
  local text = text_of(bundle)
  if not text then
    return { state = "Free", epoch = { 0, 0 } }
  end
  local record = readable_record(text)
  if not record then
    return { state = "unreadable", epoch = {} }
  end
  return record, text
end

-- The end of a bundle that starts at a place in the namespace; nil if it does not start there.
local function past(part, namespace, at)
  local of, from, to = range_of(part)
  return of == namespace and from == at and to or nil
end

-- Whether the children cover a part of the ring exactly once, and none of them exists already.
local function tile(namespace, low, high, children)
  local at = low
  for _, child in ipairs(children) do
    at = past(child, namespace, at)
    local known, text = record_of(child)
    if not at or known.state ~= "Deleted" and (text or known.state == "unreadable") then
      return false
    end
  end
  return at == high
end

-- Whether the request names what its step needs: a neighbour if two are merged, children if bundles end,
-- no more than one command writes. With the neighbour, one child has the whole range of both.
local function fits(request, before, after)
  local neighbour, children = request.neighbour, request.children or {}
  local ends = after == "Deleted"
  local merges = after == "Merging" or ends and before == "Merging"
  if merges ~= (neighbour ~= nil) or ends ~= (#children > 0) or #children > MOST_CHILDREN then
    return false
  end
  local namespace, low, high = range_of(request.bundle)
  if neighbour then
    high = past(neighbour[1], namespace, high)
    if not high or #children > 1 then
      return false
    end
  end
  return not ends or tile(namespace, low, high, children)
end

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
