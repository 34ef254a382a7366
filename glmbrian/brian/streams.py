"""A warning when groups in a network draw the same random numbers."""

from typing import Any

from ..support.validation import warn
from .internals.networks import networks_with


def warn_of_equal_draws(group: Any) -> None:
    """Warn if other active groups in the network of `group` draw the same numbers.

    Only the first of these groups warns, so each run warns once.
    """
    for network in networks_with(group):
        equal = [
            other
            for other in network.sorted_objects
            if other.active and getattr(other, "draw_key", None) == group.draw_key
        ]
        if len(equal) > 1 and equal[0] is group:
            names = " and ".join(other.name for other in equal)
            warn(
                f"{names} draw the same random numbers, because they have the same random_state: their noise is "
                "identical. Give each its own random_state or stream, as in "
                f"{type(group).__name__}(..., stream={group.name!r})"
            )
