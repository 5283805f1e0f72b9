-- The outcomes of the newest batches, for a page that is sent again.
--
-- The applied hash holds each query's last batch: field "query" is "batch digest count outcomes" of the
-- first page, "query#place" the same of another. Commit 8a0b0fc wrote "query" as "batch outcomes" of a
-- whole batch. Field "" lists the newest queries, newest first, one a line.

local APPLIED = PREFIX .. "applied"

-- How many queries' last batches are remembered.
local MOST_QUERIES = 8

-- The batch, its digest, the number of outcomes and the outcomes in a field of the applied hash; nil if
-- there is none.
local function parts_of(stored)
  return string.match(stored or "", "^(%d+) (%x*) ?(%d*) ?(%[.*)$")
end

local function applied(field)
  return parts_of(redis.call("HGET", APPLIED, field))
end

local function field_of(of, at)
  return at == 0 and of or of .. "#" .. at
end

-- What known_page found: how many outcomes the query's first page has, and the newest queries.
local first_count, newest

-- The answer instead of applying the page; nil if it is the next of its batch.
local function known_page()
  local stored = redis.call("HMGET", APPLIED, page.query, "")
  local last, of, count = parts_of(stored[1])
  first_count, newest = count, stored[2] or ""
  local ahead = tonumber(last or -1) - page.batch
  if ahead > 0 or ahead == 0 and of ~= "" and of ~= page.digest then
    return "older", last
  end
  if ahead == 0 then
    local _, _, _, outcomes = applied(field_of(page.query, page.first))
    return outcomes and "repeated", outcomes
  end
  if page.first > 0 then
    -- The store has lost the pages before it: the caller must send the batch from its start.
    return "closed", "it does not know the batch's first page"
  end
end

-- Forget a query's outcomes from this place on; its pages follow one another.
local function forget(of, at)
  local batch_there, _, count = applied(field_of(of, at))
  while batch_there do
    redis.call("HDEL", APPLIED, field_of(of, at))
    at = at + (tonumber(count) or 1)
    batch_there, _, count = applied(field_of(of, at))
  end
end

-- Note that the query is the newest; forgets those that were not used for long.
local function renew()
  local kept = { page.query }
  if string.match(newest, "^[^\n]*") == page.query then
    return
  end
  for each in string.gmatch(newest, "[^\n]+") do
    if each ~= page.query and #kept == MOST_QUERIES then
      forget(each, 0)
    elseif each ~= page.query then
      kept[#kept + 1] = each
    end
  end
  redis.call("HSET", APPLIED, "", table.concat(kept, "\n"))
end

local function remember(count, outcomes)
  if page.first == 0 then
    -- The first page of the batch before is about to be overwritten.
    forget(page.query, tonumber(first_count) or 1)
    renew()
  end
  local text = string.format("%.0f %s %d %s", page.batch, page.digest, count, outcomes)
  redis.call("HSET", APPLIED, field_of(page.query, page.first), text)
end
