-- Applies a list of transitions to one cluster's ownership records, all in this one step: a page of a
-- batch of the job, or a broker's requests. The script is the files of this folder in the order that
-- sinks/redis/scripts.py gives.
--
-- KEYS: open, ownership, journal, applied, bundles, placed, the leases' common prefix, that of brokers'
--       owned sets, unjournalled, replicas, sessions, tallies, then every command stream a transition may append to.
-- ARGV: cluster; the job's generation, query id and page ("", "", "" from a broker), a page being
--       "batch/how many transitions come before it/digest of the whole batch"; the transitions as JSON:
--       {id, bundle, event, expect, broker, actor, session, within, commands, neighbour, children,
--       candidates, each, tallies}, each command being {index of its stream in KEYS, its broker, its JSON
--       without the stamps}, each candidate {broker, load}, tallies {candidate: {tally: the value it must have, or
--       a negative one}}, a neighbour {bundle, expect}; this server's
--       time (ms) by the caller's own clock, "" if the caller is not certain of it.
-- Returns {status, detail}: applied with the outcomes as JSON, or repeated with those of the page that
--       was applied from this place on, of any length; closed with why; isolated with how many replicas
--       have acknowledged lately; fenced with the open generation; older with the batch that was applied
--       last.
--
-- Rendered from Python: EFFECTS (";state event=state owner-rule given;..."), BROKER_EVENTS, JOB_EVENTS and
-- STREAK_ENDS (" event event "), SOON_MS, MOST_FALLS, MOST_CHILDREN, CLOCK_MARGIN_MS, MOST_JOURNAL,
-- LONGEST_LEASE_MS; a name after "REFUSED." becomes its text. From history.lua: server, is_of,
-- short_of_replicas. From marks.lua: is_index_marked. From records.lua: readable_record. From sessions.lua:
-- noted_session.
-- JSON is built by hand: cjson writes an empty list as {} and long integers as 1.7e+12.

local OPEN, OWNERSHIP, JOURNAL, APPLIED = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
-- A lease's key has the same hash tag as its prefix, so it is on the same node.
local BUNDLES, PLACED, LEASES, OWNED = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local UNJOURNALLED, REPLICAS, SESSIONS, TALLIES = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local cluster, caller, query, page = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local by_broker = caller == ""
local batch, place, digest = string.match(page, "^(%d+)/(%d+)/(%x+)$")
place = tonumber(place)
local requests = cjson.decode(ARGV[5])
