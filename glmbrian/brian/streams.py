"""A warning if groups of a network draw the same random numbers."""

from ..support.validation import warn
from .internals import networks_with


def warn_of_equal_draws(group):
    """Warn if other active groups in the network of `group` draw the same numbers.

    Only the first of these groups warns, so that each run warns once.
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
                f"{names} draw the same random numbers, since they have the same random_state: they have "
                "exactly the same noise. Give each another random_state or a stream of its own, as in "
                f"{type(group).__name__}(..., stream={group.name!r})"
            )
