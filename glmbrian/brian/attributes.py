"""Attributes of Brian groups that are not variables of the model."""

from typing import Any


def add_attributes(group: Any, **values: Any) -> None:
    """Give a Brian object attributes, which may be set later.

    Without a declaration, Brian would treat a later assignment as a misspelt state variable.
    """
    for name, value in values.items():
        group.add_attribute(name)
        setattr(group, name, value)
