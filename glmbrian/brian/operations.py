"""Brian functions that are called for what they do, and not for a value."""

from brian2 import Function


def new_operation():
    """Return a Brian function of an integer, to an integer, that is called in every step.

    Its code is to be added, as an implementation for each target.
    """
    return Function(
        lambda value: None,
        arg_types=["integer"],
        return_type="integer",
        arg_units=[1],
        return_unit=1,
        stateless=False,
    )
