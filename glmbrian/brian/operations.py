"""Brian functions that are called for their side effects."""

from brian2 import Function


def new_operation() -> Function:
    """Return a Brian function from integer to integer that is called in every step.

    The caller adds an implementation for each target.
    """
    return Function(
        lambda value: None,
        arg_types=["integer"],
        return_type="integer",
        arg_units=[1],
        return_unit=1,
        stateless=False,
    )
