"""Garbage collection while Brian simulates a network of ours.

Brian collects all garbage when a run starts, to find objects that the user put into no network.
That takes longer than a short fit where scikit-learn and Matplotlib are imported.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager


class _Exempt:
    """Whether some objects are exempt from garbage collection.

    Counting them takes long if there are any, so such an answer holds for a while.
    """

    _until = 0.0

    def any(self) -> bool:
        started = time.perf_counter()
        if started < self._until:
            return True
        if gc.get_freeze_count() == 0:
            return False
        ended = time.perf_counter()
        self._until = ended + 20 * (ended - started)
        return True


_exempt = _Exempt()


@contextmanager
def only_new_garbage() -> Iterator[None]:
    """Exempt the objects that exist from garbage collection, unless the user has exempted some.

    What was created in this context is collected when it ends.  Also a decorator.
    """
    if _exempt.any():  # these would no longer be exempt afterwards
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        gc.unfreeze()
