"""Groups, and subgroups of them."""

from typing import Any

from brian2.groups.subgroup import Subgroup


def whole_group(group: Any) -> Any:
    """Return the whole group, if this is a subgroup."""
    return group.source if isinstance(group, Subgroup) else group


def span(group: Any) -> slice:
    """Return where the neurons of a group or subgroup are in the whole group."""
    return slice(group.start, group.stop) if isinstance(group, Subgroup) else slice(0, len(group))
