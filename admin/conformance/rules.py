"""The rules of a broker, each with the play that shows whether it is kept."""

from __future__ import annotations

from typing import Final

from admin.conformance.closed_plays import (
    asserts,
    asserts_again,
    looks_again,
    obeys_nothing_closed,
    waits_for_open,
)
from admin.conformance.command_plays import (
    acknowledges,
    hands_over,
    merges,
    prepares,
    seeds,
    serves,
    splits,
    stops_first,
    takes_back,
    unloads,
)
from admin.conformance.ignored_plays import (
    drops_poison,
    ignores_copies,
    ignores_members,
    refuses_old,
    skips_unknown_kinds,
)
from admin.conformance.lease_plays import (
    agrees_again,
    ends,
    gives_way,
    renews,
    stops_without_lease,
    takes,
    waits_for_older,
)
from admin.conformance.mishaps import MISHAPS
from admin.conformance.steps import Rule

RULES: Final = {
    "takes-lease": Rule("It takes a lease by the script, with + and the session.", takes),
    "renews-lease": Rule("It renews the lease before it ends.", renews),
    "seeds": Rule("It claims what its name owned before it serves it.", seeds),
    "serves": Rule("own: it serves, and confirms.", serves),
    "acknowledges": Rule("It removes an obeyed command from the stream.", acknowledges),
    "unloads": Rule("unload: it stops, and the bundle is free.", unloads),
    "stops-first": Rule("transfer, unload: it stops serving before it asks.", stops_first),
    "hands-over": Rule("transfer: the destination gets own, with the new epoch.", hands_over),
    "takes-back": Rule("transfer to a dead broker: it declines, and serves.", takes_back),
    "prepares": Rule("prepare: it serves nothing until own.", prepares),
    "refuses-old": Rule("A command of an old epoch changes nothing.", refuses_old),
    "ignores-copies": Rule("A copy of a command changes nothing.", ignores_copies),
    "skips-unknown-kinds": Rule("A command of an unknown kind is dropped.", skips_unknown_kinds),
    "ignores-members": Rule("A member that it does not know is ignored.", ignores_members),
    "drops-poison": Rule(
        "An entry that is not a command does not block those behind it.", drops_poison
    ),
    "splits": Rule("split: the children tile and are served, or it declines.", splits),
    "merges": Rule("merge: the whole is served, or it declines.", merges),
    "stops-without-lease": Rule(
        "It stops serving a second before its lease ends.", stops_without_lease
    ),
    "agrees-again": Rule("After a gap in the lease it claims before it serves.", agrees_again),
    "waits-for-open": Rule("It claims and serves nothing from a closed store.", waits_for_open),
    "asserts": Rule("It tells a closed store what it saw, and continues to serve.", asserts),
    "asserts-again": Rule("It tells a store that closed again what it saw since.", asserts_again),
    "looks-again": Rule(
        "After a closed store it drops what is another's, and claims what is its own.", looks_again
    ),
    "obeys-nothing-closed": Rule(
        "It starts no command while the store is closed.", obeys_nothing_closed
    ),
    "waits-for-older": Rule("It waits for the rest of an older process's lease.", waits_for_older),
    "gives-way": Rule(
        "It serves nothing, and takes no lease, once a later process has its name.", gives_way
    ),
    "ends": Rule("At its end it serves nothing, then gives up its lease or leaves it.", ends),
    **MISHAPS,
}
