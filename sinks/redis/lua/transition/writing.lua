-- The writes of one accepted request: records, index, owned sets and the journal.

-- The same few names stand in the record, on the journal and in the answer.
local quotes = {}

local function quoted(text)
  local quote = quotes[text]
  if not quote then
    if string.find(text, '[%c"\\]') then
      -- cjson escapes every slash, which is legal and hard to read.
      quote = string.gsub(cjson.encode(text), "\\/", "/")
    else
      quote = '"' .. text .. '"'
    end
    quotes[text] = quote
  end
  return quote
end

local function member(name, text)
  return text and ',"' .. name .. '":' .. quoted(text) or ""
end

-- True from when the journal is full until everything it left out is in it again: a reader then finds a
-- change that was left out after all earlier ones, and before all later ones.
local leaves_out = redis.call("XLEN", JOURNAL) >= MOST_JOURNAL
  or redis.call("SCARD", UNJOURNALLED) > 0

-- The change of one record: {bundle, its text, epoch, event, owner before and after, whether it existed
-- before and exists after}.
local function change(request, bundle, known, record, counter, after)
  local epoch = string.format("[%s,%.0f]", generation, counter)
  local falls = (after.falls or 0) > 0 and string.format(',"falls":%.0f', after.falls) or ""
  local written = '{"state":"' .. after.state .. '","epoch":' .. epoch
    .. member("owner", after.owner) .. member("destination", after.destination)
    .. ',"since":' .. now_text .. member("by", request.id) .. falls .. "}"
  return { bundle = bundle, text = written, epoch = epoch, event = after.event or request.event,
    gave = record.owner, has = after.owner,
    stood = known and record.state ~= "Deleted", stands = after.state ~= "Deleted" }
end

-- An error, from a revoked right or a damaged key, ends a script but undoes nothing. So the records are
-- written in one call; before it come writes that do no harm without them, after it writes that are
-- repaired without them.
local function commit(changes)
  local records = {}
  for _, each in ipairs(changes) do
    if each.has and each.has ~= each.gave then
      redis.call("SADD", OWNED .. each.has, each.bundle)
    end
    if each.stands and not each.stood then
      redis.call("ZADD", BUNDLES, 0, each.bundle)
    end
    records[#records + 1] = each.bundle
    records[#records + 1] = each.text
  end
  redis.call("HSET", OWNERSHIP, unpack(records))
  for _, each in ipairs(changes) do
    texts[each.bundle] = each.text
    -- pcall: if another broker has damaged its set, this change must still be journalled.
    if each.gave and each.has ~= each.gave then
      redis.pcall("SREM", OWNED .. each.gave, each.bundle)
    end
    if each.stood and not each.stands then
      redis.call("ZREM", BUNDLES, each.bundle)
    end
  end
end

-- With the first change come the commands that a broker issued with it: the job, which publishes its own,
-- learns of these only here.
local function journal(changes, commands)
  for i, each in ipairs(changes) do
    local left_out = leaves_out
    if not left_out then
      local entry = { "change", '{"cluster":' .. quoted(cluster) .. member("bundle", each.bundle)
        .. ',"event":"' .. each.event .. '","record":' .. each.text .. "}" }
      if i == 1 and by_broker and #commands > 0 then
        local texts = {}
        for j, command in ipairs(commands) do
          texts[j] = command.text
        end
        entry[3], entry[4] = "commands", "[" .. table.concat(texts, ",") .. "]"
      end
      -- A stream whose ids a client has exhausted takes no more entries.
      local added = redis.pcall("XADD", JOURNAL, "*", unpack(entry))
      left_out = type(added) == "table" and added.err
    end
    if left_out then
      leaves_out = true
      redis.call("SADD", UNJOURNALLED, each.bundle)
    end
  end
end

local function born(request, owner, above)
  local children = {}
  for _, child in ipairs(request.children or {}) do
    local known, text = record_of(child)
    -- Also above the ended bundles: brokers use it to detect late commands, and a rebuild to find the
    -- current bundles.
    local counter = math.max(known.epoch[2], above) + 1
    local after = { state = "Owned", owner = owner }
    children[#children + 1] = change(request, child, text, known, counter, after)
  end
  return children
end
