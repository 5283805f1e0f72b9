"""MessagePack for frozen dataclasses with columns: Spark state, and rows between operators.

An array is encoded as its row count (0 for one dimension, 8 bytes so that the data stays aligned)
and its raw little-endian bytes; its type is the field's annotation. Decoded arrays are read-only
views of the message. No pickle: state that is read back cannot run code.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any, Final, TypeVar, get_args

import lz4.frame
import msgspec
import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

_PREFIX: Final = 8
_LZ4: Final = b"\x04"
"""How a frame of LZ4 begins; the MessagePack of a dataclass or a mapping never does."""
_ZLIB: Final = b"\x78"
"""How zlib's data begin, which earlier versions wrote."""


def _encode_array(value: object) -> bytes:
    if not isinstance(value, np.ndarray):
        raise NotImplementedError(f"{type(value).__name__} is not a column")
    rows = value.shape[0] if value.ndim == 2 else 0
    return rows.to_bytes(_PREFIX, "little") + value.tobytes()


def _decode_array(annotation: Any, data: object) -> NDArray[Any]:
    if not isinstance(data, bytes):
        raise NotImplementedError(f"{annotation} is not a column")
    rows = int.from_bytes(data[:_PREFIX], "little")
    column: NDArray[Any] = np.frombuffer(data, _dtype(annotation), offset=_PREFIX)
    return column.reshape(rows, -1) if rows else column


@lru_cache
def _dtype(annotation: Any) -> np.dtype[Any]:
    scalar: type[np.generic] = get_args(get_args(annotation)[1])[0]
    return np.dtype(scalar)


# Sorted keys: equal values give equal bytes, whatever order they were built in.
_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_encode_array, order="deterministic")


_DECODERS: Final[dict[Any, msgspec.msgpack.Decoder[Any]]] = {}
"""One per type: building a decoder costs a hundred times as much as using it."""


def pack(value: object) -> bytes:
    """Encode a dataclass or Struct whose fields are plain values and columns."""
    return _ENCODER.encode(value)


def pack_small(value: object) -> bytes:
    """Encode as `pack` does, compressed: half of the bytes to store and to send, or fewer."""
    return compress(pack(value))


def compress(data: bytes) -> bytes:
    """Compress what `pack` returned, by LZ4: zlib saves an eighth more at ten times the cost."""
    small: bytes = lz4.frame.compress(data)
    return small


def inflate(data: bytes) -> bytes:
    """Decompress what `pack_small` returned; what `pack` returned stays as it is."""
    if data[:1] == _LZ4:
        whole: bytes = lz4.frame.decompress(data)
        return whole
    return zlib.decompress(data) if data[:1] == _ZLIB else data


def unpack(data: bytes, kind: type[T]) -> T:
    """Decode what `pack` or `pack_small` returned; raises msgspec.ValidationError where the fields
    do not fit."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.msgpack.Decoder(kind, dec_hook=_decode_array)
    value: T = decoder.decode(inflate(data))
    return value
