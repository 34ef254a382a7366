"""Counter-based random numbers: the same spikes on every device.

A draw is a hash of (key, presentation, step, index) rather than the next value
of a generator with a state.  NumPy, Cython, C++ and GPU code therefore give the
same numbers, in any order and any batch size.

The hash is the output function of SplitMix64 (Steele, Lea and Flood 2014),
applied twice: first to the presentation, which gives a base, then to
``base + GOLDEN * (counter + 1)``.
"""

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Values of arguments `random_state`; see `derive_keys`.
RandomState = int | np.random.RandomState | np.random.Generator | None

GOLDEN = np.uint64(0x9E3779B97F4A7C15)

#: A level is a probability times this.  Levels are compared with 16-bit draws, four of which
#: come from one 64-bit hash; a second hash decides on the fraction of a level.
DRAW_LEVELS = 1 << 16


#: About how many draws `UniformsOf` makes ahead.
_DRAWN_AHEAD = 2**13


def mix64(z: Any) -> Any:
    """Scramble unsigned 64-bit integers (array or scalar) one to one."""
    z = np.array(z, dtype=np.uint64)
    _mix_in_place(z)
    return z[()]


def _mix_in_place(z: NDArray[np.uint64]) -> None:
    shifted = np.asarray(z >> np.uint64(30))
    z ^= shifted
    z *= np.uint64(0xBF58476D1CE4E5B9)
    np.right_shift(z, np.uint64(27), out=shifted)
    z ^= shifted
    z *= np.uint64(0x94D049BB133111EB)
    np.right_shift(z, np.uint64(31), out=shifted)
    z ^= shifted


def _hashes(key: Any, counters: Any) -> Any:
    with np.errstate(over="ignore"):
        return mix64(key + GOLDEN * (_unsigned(counters) + np.uint64(1)))


def _unsigned(values: Any) -> NDArray[np.uint64]:
    return np.asarray(values).astype(np.int64).astype(np.uint64)


def hashes(
    key: int | np.uint64, presentation: ArrayLike, step: ArrayLike, index: ArrayLike
) -> NDArray[np.uint64]:
    """Return the 64-bit hashes of (`presentation`, `step`, `index`) under `key`.

    Parameters
    ----------
    key : uint64
        See `derive_keys`.
    presentation, step, index : array_like of int
        Broadcast against each other; `index` below 2**32.

    Returns
    -------
    ndarray of uint64
    """
    step = _unsigned(step)
    base = _hashes(np.uint64(key), presentation)
    # The counter has room for 32 bits of the step; higher bits change the base.
    beyond = step >> np.uint64(32)
    if beyond.any():
        base = np.where(beyond, _hashes(base, beyond), base)
    return _hashes(base, (step << np.uint64(32)) | _unsigned(index))


def uniforms(
    key: int | np.uint64, presentation: ArrayLike, step: ArrayLike, index: ArrayLike
) -> NDArray[np.floating]:
    """Return draws from [0, 1) with 53 random bits each (see `hashes`)."""
    return (hashes(key, presentation, step, index) >> np.uint64(11)) * 2.0**-53


class UniformsOf:
    """The draws of `uniforms` for the same indices in many steps, with fewer operations.

    Steps that follow each other are drawn some at a time, since each call of NumPy takes longer than
    drawing for tens of neurons.

    Parameters
    ----------
    index : ndarray of int
    """

    def __init__(self, index: NDArray[np.int_]) -> None:
        self.index = index
        self._products = GOLDEN * (_unsigned(index) + np.uint64(1))
        self._most = max(1, _DRAWN_AHEAD // max(1, index.size))
        # Replaced as a whole, for other threads
        self._drawn: tuple[int, int, int, NDArray[np.floating]] = (0, 0, 0, np.empty((0, index.size)))

    def __call__(self, key: int, presentation: int, step: int) -> NDArray[np.floating]:
        of_key, of_presentation, first, draws = self._drawn
        if (key, presentation) != (of_key, of_presentation) or not 0 <= step - first < len(draws):
            goes_on = (key, presentation, step) == (of_key, of_presentation, first + len(draws))
            n_steps = min(2 * len(draws), self._most) if goes_on and len(draws) else 1
            first, draws = step, self._draw(key, presentation, step, n_steps)
            self._drawn = key, presentation, first, draws
        return draws[step - first]

    def _draw(self, key, presentation, step, n_steps):
        """Return draws (n_steps or fewer, n) from `step` on."""
        base = _hashes(np.uint64(key), presentation)
        if step >> 32:
            base = _hashes(base, step >> 32)
        low = step & 0xFFFFFFFF
        # As step << 32 and the index have no bits in common, their sum is hashed.
        steps = np.arange(low, min(low + n_steps, 2**32), dtype=np.uint64) << np.uint64(32)
        z = (base + GOLDEN * steps)[:, np.newaxis] + self._products
        _mix_in_place(z)
        z >>= np.uint64(11)
        return z * 2.0**-53


def draws16(
    key: int | np.uint64, presentation: ArrayLike, step: ArrayLike, index: ArrayLike
) -> NDArray[np.uint64]:
    """Return integers drawn from [0, 65536) (see `hashes`).

    Four successive steps share one hash, 16 bits each.
    """
    step = _unsigned(step)
    words = hashes(key, presentation, step >> np.uint64(2), index)
    return (words >> (np.uint64(16) * (step & np.uint64(3)))) & np.uint64(0xFFFF)


def bernoulli(
    key: int | np.uint64,
    presentation: ArrayLike,
    step: ArrayLike,
    index: ArrayLike,
    level: ArrayLike,
) -> NDArray[np.bool_]:
    """Return whether events with probability `level` / 65536 happen.

    The 16-bit draws decide (see `draws16`).  If a draw equals the integer part of the level, a
    draw from a second stream is compared with the fraction.

    Parameters
    ----------
    key, presentation, step, index
        See `hashes`.
    level : array_like of float
        From 0 to 65536.

    Returns
    -------
    ndarray of bool
    """
    draws, whole = draws16(key, presentation, step, index), np.floor(level)
    happens = np.asarray(draws < whole)
    open_ = (draws == whole) & (whole < level)
    if open_.any():
        counters = np.broadcast_arrays(open_, presentation, step, index, level - whole)[1:]
        presentation, step, index, rest = (np.asarray(values)[open_] for values in counters)
        happens[open_] = uniforms(_second_key(key), presentation, step, index) < rest
    return happens


def hidden_key(output_key: int, number: int) -> int:
    """Return the key of a hidden layer's draws, given that of the outputs.

    Layers are counted from the input on.  The counters are negative, which no presentation is.
    """
    return int(_hashes(np.uint64(output_key), -2 - number))


def repeated_key(key: int, repetition: int) -> int:
    """Return the key of further draws of the same kind; `key` itself for repetition 0."""
    if repetition == 0:
        return key
    # Counters below those of `hidden_key`, and no presentation
    return int(_hashes(np.uint64(key), -(2**40) - repetition))


def adversarial_key(output_key: int) -> int:
    """Return the key of the draws that say which presentations are attacked in training."""
    # A counter between those of `hidden_key` and of `repeated_key`
    return int(_hashes(np.uint64(output_key), -(2**39)))


def _second_key(key):
    with np.errstate(over="ignore"):
        return mix64(np.uint64(key) + np.uint64(1))


def shuffled(key: int | np.uint64, epoch: int, n: int) -> NDArray[np.int_]:
    """Return the order of the `n` presentations in an `epoch`."""
    return np.argsort(hashes(key, epoch, 0, np.arange(n)), kind="stable")


def check_random_state(random_state: Any, name: str = "random_state") -> None:
    """Raise unless `derive_keys` accepts this random state."""
    if random_state is None or random_state is np.random:
        return
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return
    is_integer = isinstance(random_state, numbers.Integral)
    if not is_integer or isinstance(random_state, (bool, np.timedelta64)) or random_state < 0:
        raise ValueError(
            f"{name} must be None, a non-negative integer, a numpy RandomState or "
            f"a numpy Generator, got {random_state!r}"
        )


def derive_keys(random_state: RandomState, *purposes: int, stream: str | None = None) -> list[int]:
    """Return one independent 64-bit key per purpose.

    Parameters
    ----------
    random_state : None, int, numpy.random.RandomState or numpy.random.Generator
        ``None`` draws from NumPy's global generator, which `brian2.seed` sets on
        the runtime device.
    *purposes : int
        Numbers of what the draws are for; the same purpose gives the same key.
    stream : str, optional
        Keys of different streams are independent of each other and of keys without a stream.

    Returns
    -------
    list of int
    """
    if stream is not None and not isinstance(stream, str):
        raise TypeError(f"stream must be a name such as 'hidden', or None, got {stream!r}")
    if stream == "":
        raise ValueError("stream must be a name such as 'hidden', or None, got an empty string")
    name = tuple((stream or "").encode())
    root = _entropy(random_state)
    return [
        int(np.random.SeedSequence(root, spawn_key=(purpose, *name)).generate_state(1, np.uint64)[0])
        for purpose in purposes
    ]


def _entropy(random_state):
    check_random_state(random_state)
    if random_state is None or random_state is np.random:
        return int(np.random.randint(2**31 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return int(random_state)


def split_key(key: int) -> tuple[int, int]:
    """Return a 64-bit key as two signed 32-bit integers, which Brian can store."""
    low, high = np.array([key & 0xFFFFFFFF, key >> 32], dtype=np.uint32).view(np.int32)
    return int(low), int(high)


def join_key(low: ArrayLike, high: ArrayLike) -> Any:
    """Return the 64-bit key that `split_key` split, as an array of uint64."""
    mask = np.uint64(0xFFFFFFFF)
    return (_unsigned(low) & mask) | ((_unsigned(high) & mask) << np.uint64(32))
