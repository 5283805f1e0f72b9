"""Properties run on machines shared with other work: an example has no deadline."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("shared-machine", deadline=None, print_blob=True)
settings.load_profile("shared-machine")
