"""The random numbers of a classifier, with one key for each purpose."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from ..core.randomness import derive_keys, mix64
from ..support.validation import integer


@dataclass(frozen=True)
class Streams:
    """The 64-bit integer keys of independent streams of random numbers.

    train_inputs, test_inputs : int
        Input spikes in training and in tests.
    order : int
        Order of the presentations in each epoch.
    start : int
        Parameters before training.
    test_outputs : int
        Output spikes in tests.
    choices : int
        Random decisions (see `decisions.decide`).
    """

    # Files hold the keys in this order, and a key's position gives its purpose (`_PURPOSES`).
    train_inputs: int
    order: int
    start: int
    test_inputs: int
    test_outputs: int
    choices: int

    @classmethod
    def derive(cls, random_state: Any) -> "Streams":
        """Return the streams derived from a valid `random_state`."""
        return cls(*derive_keys(random_state, *_PURPOSES.values()))

    def starting_from(self, start_state: Any) -> "Streams":
        """Return these streams with the start derived from `start_state`, unless that is None."""
        if start_state is None:
            return self
        return replace(self, start=derive_keys(start_state, _PURPOSES["start"])[0])

    @property
    def train_outputs(self) -> int:
        """Key of output spikes in training, for objectives that leave outputs free."""
        return int(mix64(self.test_outputs))

    @classmethod
    def from_file(cls, keys: Any) -> "Streams":
        """Check the `keys` read from a file, and return the streams."""
        if not isinstance(keys, list) or len(keys) != len(_PURPOSES):
            raise ValueError(f"keys must be a list of {len(_PURPOSES)} integers, got {keys!r}")
        return cls(
            *(integer(key, f"keys[{position}]", 0, 2**64 - 1) for position, key in enumerate(keys))
        )

    def to_file(self) -> list[int]:
        """Return the keys as `from_file` takes them."""
        return list(asdict(self).values())


#: The numbers by which `derive_keys` distinguishes the streams.
_PURPOSES = {name: 10 + position for position, name in enumerate(Streams.__dataclass_fields__)}
