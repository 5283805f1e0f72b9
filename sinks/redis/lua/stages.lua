-- How far a migration is, read from its JSON without decoding it. Shared by the scripts, which stand below it.
--
-- Its waves may have a hundred thousand names, 5 MB, of which a decode takes 30 ms for each run of a script. Only the
-- job writes it, without spaces; in a text every quote has a backslash before it, so a member's name with its quotes
-- and the colon stands only where a member begins. The members that are read here are of the migration itself alone.

-- What stands after a member's name, as far as a pattern matches; nil without the member.
local function member_of(text, name, pattern)
  local _, ends = string.find(text, '"' .. name .. '":', 1, true)
  return ends and string.match(text, "^" .. pattern, ends + 1)
end

-- {state, wave, check, alone}; nil if there is none, or it cannot be read.
local function stage_of(text)
  if not text or string.sub(text, -1) ~= "}" then
    return nil
  end
  local state, wave = member_of(text, "state", '"([^"\\]+)"'), tonumber(member_of(text, "wave", "[%d.]+"))
  return state and wave
    and { state = state, wave = wave, check = member_of(text, "check", "[^,}]+"), alone = member_of(text, "alone", "true") }
end
