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
