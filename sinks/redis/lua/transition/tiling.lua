-- Whether a request's children and neighbour fit the ranges of the ring.

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
