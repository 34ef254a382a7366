"""Whether the groups of a network draw random numbers of their own."""

from .brian_internals import networks_with
from .validation import warn


def warn_of_equal_draws(group):
    """Warn if other active groups in the network of `group` draw the same numbers.

    Of several such groups the first one warns, so that each run warns once.
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
                f"{names} draw the same random numbers, since they have the same random_state: their "
                "noise is one and the same. Give each a random_state of its own, or a stream such "
                f"as {type(group).__name__}(..., stream={group.name!r})"
            )
