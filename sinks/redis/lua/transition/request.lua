-- Applies a list of transitions to one cluster's ownership records, all in this one step: a page of a
-- batch of the job, or a broker's requests. The script is the files of this folder in the order that
-- sinks/redis/scripts.py gives.
--
-- KEYS: open. The cluster's other keys differ from it in their last part, so they are on the same node.
-- ARGV: the call as JSON, {requests, now, page}. Each request is a transition:
--       {id, bundle, event, expect, broker, actor, session, within, commands, neighbour, children, candidates,
--       each, tallies}, each command being {its broker, its JSON without the stamps}, each candidate {broker,
--       load}, tallies {candidate: {tally: the value it must have, or a negative one}}, a neighbour {bundle,
--       expect}. now: this server's time (ms) by the caller's own clock, absent if the caller is not certain of
--       it. page, absent from a broker: {generation, query, batch, first, digest}, the job's generation and
--       query id, the batch, how many of its transitions come before these, and a digest of the whole batch.
-- Returns {status, detail}: applied with the outcomes as JSON, or repeated with those of the page that
--       was applied from this place on, of any length; closed with why; isolated with how many replicas
--       have acknowledged lately; fenced with the open generation; older with the batch that was applied
--       last.
--
-- Rendered from Python: EFFECTS (";state event=state owner-rule given;..."), BROKER_EVENTS, JOB_EVENTS and
-- STREAK_ENDS (" event event "), SOON_MS, MOST_FALLS, MOST_CHILDREN, CLOCK_MARGIN_MS, MOST_JOURNAL,
-- LONGEST_LEASE_MS; a name after "REFUSED." becomes its text. From history.lua: server, is_of. From
-- replicas.lua: short_of_replicas. From marks.lua: is_index_marked. From records.lua: readable_record. From
-- sessions.lua: noted_session.
-- JSON is built by hand: cjson writes an empty list as {} and long integers as 1.7e+12.

local OPEN = KEYS[1]
local PREFIX = string.sub(OPEN, 1, -#"open" - 1)
local OWNERSHIP, JOURNAL, BUNDLES = PREFIX .. "ownership", PREFIX .. "journal", PREFIX .. "bundles"
local UNJOURNALLED, REPLICAS = PREFIX .. "unjournalled", PREFIX .. "replicas"
local LEASES, OWNED, COMMANDS = PREFIX .. "lease:", PREFIX .. "owned:", PREFIX .. "commands:"
-- No cluster's name has a brace.
local cluster = string.match(OPEN, "{(.*)}")

local call = cjson.decode(ARGV[1])
local requests, page = call.requests, call.page
local by_broker = not page
