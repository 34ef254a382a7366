"""Groups and subgroups of neurons, treated alike."""

from typing import Any

from brian2.groups.subgroup import Subgroup


def whole_group(group: Any) -> Any:
    """Return the whole group of a subgroup, or the group itself."""
    return group.source if isinstance(group, Subgroup) else group


def span(group: Any) -> slice:
    """Return the slice of the whole group that holds the neurons of a group or subgroup."""
    return slice(group.start, group.stop) if isinstance(group, Subgroup) else slice(0, len(group))
