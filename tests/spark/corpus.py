"""Records that must change no state, each with the reason why it is rejected."""

from __future__ import annotations

from typing import Final, NamedTuple

from trimtab.wire import keys
from trimtab.wire.reports.poison import Poison

Headers = tuple[tuple[str, bytes | None], ...]


class Bad(NamedTuple):
    """A record and its reason; ``value`` stands on a good key, ``key`` above a good value."""

    name: str
    reason: str
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()


def reports(cluster: str, good: bytes) -> list[Bad]:
    """Bad load reports, on trimtab.load-reports; a good key is that of ``poisoner:1``."""
    key = f"{cluster}/poisoner:1".encode()
    values = {
        "empty": (b"", Poison.JSON),
        "no value at all": (None, Poison.JSON),
        "not JSON": (b"\x00\xff\xfe", Poison.JSON),
        "cut short": (good[:-10], Poison.JSON),
        "trailing bytes": (good + b"}", Poison.JSON),
        "two reports": (good + good, Poison.JSON),
        "byte order mark": (b"\xef\xbb\xbf" + good, Poison.JSON),
        "a list": (b"[]", Poison.SHAPE),
        "null": (b"null", Poison.SHAPE),
        "no member at all": (b"{}", Poison.SHAPE),
        "members in another case": (
            b'{"CPU":{"usage":1,"limit":100},"LASTSTATS":{}}',
            Poison.SHAPE,
        ),
        "a usage without a limit": (b'{"cpu":{"usage":1}}', Poison.SHAPE),
        "a null resource": (b'{"cpu":null}', Poison.SHAPE),
        "NaN": (b'{"msgRateIn":NaN}', Poison.JSON),
        "infinity": (b'{"cpu":{"usage":Infinity,"limit":100}}', Poison.JSON),
        "NaN in quotes": (b'{"msgRateIn":"NaN"}', Poison.SHAPE),
        "1e400": (b'{"msgRateIn":1e400}', Poison.SHAPE),
        "401 digits": (b'{"numTopics":1' + b"0" * 400 + b"}", Poison.RANGE),
        "a number for a map": (b'{"lastStats":1}', Poison.SHAPE),
        "text for a number": (b'{"msgRateIn":"1"}', Poison.SHAPE),
        "a fraction of a topic": (b'{"numTopics":1.5}', Poison.SHAPE),
        "a negative rate": (b'{"msgRateOut":-0.5}', Poison.RANGE),
        "-1 where it means nothing": (b'{"numTopics":-1}', Poison.RANGE),
        "a negative usage": (b'{"cpu":{"usage":-2,"limit":100}}', Poison.RANGE),
        "1e14 of 100": (b'{"cpu":{"usage":1e14,"limit":100}}', Poison.IMPLAUSIBLE),
        "a listed bundle that is none": (b'{"bundles":["a/b"]}', Poison.BUNDLE),
        "an infinite percentage": (b'{"cpu":{"usage":1,"limit":1e-300}}', Poison.RANGE),
        "a bundle's negative rate": (
            b'{"lastStats":{"a/b/0x00000000_0xffffffff":{"msgRateIn":-1}}}',
            Poison.RANGE,
        ),
        "a bundle that is none": (b'{"lastStats":{"a/b":{}}}', Poison.BUNDLE),
        "a control character in a name": (
            b'{"lastStats":{"a/\\u001b[2J/0x00000000_0xffffffff":{}}}',
            Poison.BUNDLE,
        ),
        "an empty range": (b'{"lastStats":{"a/b/0x00000001_0x00000001":{}}}', Poison.BUNDLE),
        "deep": (b'{"protocols":' + b"[" * 3000 + b"]" * 3000 + b"}", Poison.JSON),
        "10 MB": (b'{"webServiceUrl":"' + b"x" * (10 << 20) + b'"}', Poison.SIZE),
        "a byte too many": (b" " * (1 << 20) + b"}", Poison.SIZE),
        "not UTF-8": (b'{"brokerVersionString":"\xff"}', Poison.JSON),
        "half a surrogate": (b'{"brokerVersionString":"\\ud800"}', Poison.JSON),
    }
    key_by_name = {
        "no key": None,
        "empty key": b"",
        "no broker": cluster.encode(),
        "three parts": key + b"/x",
        "empty broker": f"{cluster}/".encode(),
        "a blank": f"{cluster}/a b".encode(),
        "a brace in the cluster": f"{cluster}}}:lease:x/a".encode(),
        "a brace in the broker": f"{cluster}/a}}".encode(),
        "a line feed": key + b"\n",
        "key that is not UTF-8": key + b"\xff",
        "300 characters": key + b"x" * 300,
    }
    header_by_name: dict[str, tuple[str, bytes]] = {
        "a word": (keys.SESSION_HEADER, b"today"),
        "a negative session": (keys.SESSION_HEADER, b"-1"),
        "an empty sequence": (keys.SEQUENCE_HEADER, b""),
        "beyond 64 bits": (keys.SEQUENCE_HEADER, b"9" * 19),
        "header that is not UTF-8": (keys.SEQUENCE_HEADER, b"\xff\xfe"),
    }
    return [
        *(Bad(name, reason, value, key) for name, (value, reason) in values.items()),
        *(Bad(name, Poison.KEY, good, bad) for name, bad in key_by_name.items()),
        *(Bad(name, Poison.HEADERS, good, key, (bad,)) for name, bad in header_by_name.items()),
    ]


def intents(cluster: str) -> list[Bad]:
    """Bad intents, on trimtab.control."""
    key = cluster.encode()
    pause = b'{"id":"x","kind":"pause","cluster":"%s"}'
    return [
        Bad("not JSON", _RECORD, b"pause!", key),
        Bad("no value at all", _RECORD, None, key),
        Bad("an unknown kind", _RECORD, b'{"id":"x","kind":"explode","cluster":"%s"}' % key, key),
        Bad("no id", _RECORD, b'{"kind":"pause","cluster":"%s"}' % key, key),
        Bad("deep", _RECORD, b'{"x":' + b"[" * 3000 + b"]" * 3000 + b"}", key),
        Bad(
            "a generation for no state",
            _RECORD,
            b'{"id":"x","kind":"pause","cluster":"%s","generation":1%s}' % (key, b"0" * 30),
            key,
        ),
        Bad("another cluster's", _CLUSTER, pause % b"other", key),
        Bad("of no cluster", _CLUSTER, pause % key, None),
        Bad("of no cluster, and it says so", _CLUSTER, pause % b"", b" "),
    ]


def changes(cluster: str, bundle: str) -> list[Bad]:
    """Bad changes of ownership, on trimtab.ownership."""
    key = f"{cluster}/{bundle}".encode()

    def change(record: bytes, name: str = bundle, of: str = cluster) -> bytes:
        said = f'{{"cluster":"{of}","bundle":"{name}","event":"claim","record":'
        return said.encode() + record + b"}"

    mine = b'{"state":"Owned","epoch":[9,9],"owner":"thief:1"}'
    return [
        Bad("not JSON", _RECORD, b"{", key),
        Bad("a bundle that is none", _RECORD, change(mine, "junk"), key),
        Bad("an unknown state", _RECORD, change(b'{"state":"Lost","epoch":[1,1]}'), key),
        Bad("an epoch of one", _RECORD, change(b'{"state":"Owned","epoch":[1]}'), key),
        Bad("owned by nobody", _RECORD, change(b'{"state":"Owned","epoch":[1,1]}'), key),
        Bad("a negative epoch", _RECORD, change(b'{"state":"Owned","epoch":[-1,1]}'), key),
        Bad(
            "a huge epoch",
            _RECORD,
            change(b'{"state":"Owned","epoch":[1,1' + b"0" * 40 + b"]}"),
            key,
        ),
        Bad(
            "more falls than fit",
            _RECORD,
            change(b'{"state":"Owned","epoch":[9,9],"owner":"a:1","falls":1' + b"0" * 30 + b"}"),
            key,
        ),
        Bad("another cluster's", _CLUSTER, change(mine, of="other"), key),
        Bad("of no cluster", _CLUSTER, change(mine), b""),
    ]


_RECORD: Final = "bad-record"
_CLUSTER: Final = "wrong-cluster"
