"""kafka-python leaves the socket of a refused connection to the garbage collector.

Where Kafka goes away, a test collects them itself: else the warning of Python fails whichever test
runs when the collector does.
"""

from __future__ import annotations

import gc
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def refused_sockets_collected() -> Iterator[None]:
    """Collect what producers of the block have left, once nothing refers to them any more."""
    # Captured records would keep the sockets alive.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
