"""Counter-based random numbers: the same spikes on every device.

A draw is a hash of (key, presentation, step, index) rather than the next value
of a generator with a state.  NumPy, Cython, C++ and GPU code therefore give the
same numbers, in whatever order and however many at once they are evaluated.

The hash is the output function of SplitMix64 (Steele, Lea and Flood 2014),
applied twice: first to the presentation, which gives a base, then to
``base + GOLDEN * (counter + 1)``.
"""

import numbers

import numpy as np
from brian2 import Function, second

GOLDEN = np.uint64(0x9E3779B97F4A7C15)

#: A level is a probability times this.  Levels are compared with 16-bit draws, four of which
#: come from one 64-bit hash; a second hash decides about the fraction of a level.
DRAW_LEVELS = 1 << 16


def mix64(z):
    """Scramble unsigned 64-bit integers (array or scalar) one to one."""
    z = np.asarray(z, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _hashes(key, counters):
    with np.errstate(over="ignore"):
        return mix64(key + GOLDEN * (_unsigned(counters) + np.uint64(1)))


def _unsigned(values):
    return np.asarray(values).astype(np.int64).astype(np.uint64)


def hashes(key, presentation, step, index):
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
    # The counter has room for 32 bits of the step; the other bits change the base.
    beyond = step >> np.uint64(32)
    if beyond.any():
        base = np.where(beyond, _hashes(base, beyond), base)
    return _hashes(base, (step << np.uint64(32)) | _unsigned(index))


def uniforms(key, presentation, step, index):
    """Return draws from [0, 1) with 53 random bits each (see `hashes`)."""
    return (hashes(key, presentation, step, index) >> np.uint64(11)) * 2.0**-53


def draws16(key, presentation, step, index):
    """Return integers drawn from [0, 65536) (see `hashes`).

    Four successive steps share one hash, 16 bits each.
    """
    step = _unsigned(step)
    words = hashes(key, presentation, step >> np.uint64(2), index)
    return (words >> (np.uint64(16) * (step & np.uint64(3)))) & np.uint64(0xFFFF)


def bernoulli(key, presentation, step, index, level):
    """Return whether events with probability `level` / 65536 happen.

    The 16-bit draws decide (see `draws16`), unless one equals the whole part of the level;
    then a draw from a second stream is compared with the fraction.

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


def _second_key(key):
    with np.errstate(over="ignore"):
        return mix64(np.uint64(key) + np.uint64(1))


def shuffled(key, epoch, n):
    """Return the order in which the `n` presentations of an `epoch` come."""
    return np.argsort(hashes(key, epoch, 0, np.arange(n)), kind="stable")


def check_random_state(random_state, name="random_state"):
    """Raise unless `derive_keys` takes this random state."""
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


def derive_keys(random_state, *purposes, stream=None):
    """Return one independent 64-bit key a purpose.

    Parameters
    ----------
    random_state : None, int, numpy.random.RandomState or numpy.random.Generator
        ``None`` draws from NumPy's global generator, which `brian2.seed` sets on
        the runtime device.
    *purposes : int
        What the draws are for; the same purpose gives the same key.
    stream : str, optional
        Keys of different streams are independent of each other, and of those without one.

    Returns
    -------
    list of int
    """
    if stream is not None and not isinstance(stream, str):
        raise TypeError(f"stream must be a name such as 'hidden', or None, got {stream!r}")
    if stream == "":
        raise ValueError("stream must be a name such as 'hidden', or None, got an empty one")
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


def split_key(key):
    """Return a 64-bit key as two signed 32-bit integers, which Brian can hold."""
    low, high = np.array([key & 0xFFFFFFFF, key >> 32], dtype=np.uint32).view(np.int32)
    return int(low), int(high)


def _join_key(key_low, key_high):
    mask = np.uint64(0xFFFFFFFF)
    return (_unsigned(key_low) & mask) | ((_unsigned(key_high) & mask) << np.uint64(32))


#: How C++ functions begin.  GeNN defines the macro for code that runs on a GPU.
CPP_FUNCTION = """
#ifndef SUPPORT_CODE_FUNC
#define SUPPORT_CODE_FUNC static inline
#endif
"""

#: The hash in C++; Cython's differs only in its function headers.
CPP_HASH = """
SUPPORT_CODE_FUNC uint64_t glm_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}
SUPPORT_CODE_FUNC uint64_t glm_hash(uint64_t key, uint64_t counter)
{
    return glm_mix64(key + UINT64_C(0x9E3779B97F4A7C15) * (counter + 1));
}
"""

_CPP_ARGUMENTS = "int64_t key_low, int64_t key_high, int64_t presentation, int64_t step, int64_t index"

_CPP_WORD = """
SUPPORT_CODE_FUNC uint64_t glm_key(int64_t key_low, int64_t key_high)
{
    return (uint64_t)(uint32_t)key_low | ((uint64_t)(uint32_t)key_high << 32);
}
SUPPORT_CODE_FUNC uint64_t glm_word(uint64_t key, int64_t presentation, int64_t step, int64_t index)
{
    uint64_t base = glm_hash(key, (uint64_t)presentation);
    if (step >> 32) base = glm_hash(base, (uint64_t)step >> 32);
    return glm_hash(base, ((uint64_t)step << 32) | (uint64_t)index);
}
SUPPORT_CODE_FUNC double glm_unit(uint64_t word)
{
    return (double)(word >> 11) * (1.0 / 9007199254740992.0);
}
"""

_CYTHON_WORD = """
from libc.stdint cimport int64_t, uint32_t, uint64_t
cdef inline uint64_t glm_mix64(uint64_t z) noexcept nogil:
    z = (z ^ (z >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t>0x94D049BB133111EB
    return z ^ (z >> 31)
cdef inline uint64_t glm_hash(uint64_t key, uint64_t counter) noexcept nogil:
    return glm_mix64(key + <uint64_t>0x9E3779B97F4A7C15 * (counter + 1))
cdef inline uint64_t glm_key(int64_t key_low, int64_t key_high) noexcept nogil:
    return <uint64_t><uint32_t>key_low | (<uint64_t><uint32_t>key_high << 32)
cdef inline uint64_t glm_word(uint64_t key, int64_t presentation, int64_t step,
                              int64_t index) noexcept nogil:
    cdef uint64_t base = glm_hash(key, <uint64_t>presentation)
    if step >> 32:
        base = glm_hash(base, <uint64_t>step >> 32)
    return glm_hash(base, (<uint64_t>step << 32) | <uint64_t>index)
cdef inline double glm_unit(uint64_t word) noexcept nogil:
    return <double>(word >> 11) * (1.0 / 9007199254740992.0)
"""


def _brian_function(name, in_numpy, cpp, cython, more_arguments=(), returns=("float", 1)):
    """Make a Brian function of (key_low, key_high, presentation, step, index, ...).

    `cpp` and `cython` are its code; in names that begin with ``glm_``, this prefix is replaced
    by the function's name.
    """
    return_type, return_unit = returns
    function = Function(
        in_numpy,
        arg_types=["integer"] * 5 + ["float"] * len(more_arguments),
        return_type=return_type,
        arg_units=[1] * (5 + len(more_arguments)),
        return_unit=return_unit,
        stateless=True,
    )
    # The implementation that Brian makes of `in_numpy` checks units, and for that formats
    # the result as text, in every call.
    function.implementations.add_implementation("numpy", in_numpy)
    arguments = ", ".join([_CPP_ARGUMENTS, *(f"double {argument}" for argument in more_arguments)])

    def own_names(code):
        # Each function needs its own copy of the hash, under its own names, since the code
        # of an object that uses two functions includes both.
        return code.replace("glm_", f"{name}_").replace("THIS", f"{name}({arguments})")

    for target in ("cpp", "genn"):
        code = CPP_FUNCTION + own_names(CPP_HASH + _CPP_WORD + cpp)
        function.implementations.add_implementation(target, code, name=name)
    function.implementations.add_implementation("cython", own_names(_CYTHON_WORD + cython))
    return function


#: Brian function of (key_low, key_high, presentation, step, index): a uniform
#: draw from [0, 1), see `uniforms`.
glm_uniform = _brian_function(
    "glm_uniform",
    lambda low, high, *counters: uniforms(_join_key(low, high), *counters),
    """
SUPPORT_CODE_FUNC double THIS
{
    return glm_unit(glm_word(glm_key(key_low, key_high), presentation, step, index));
}
""",
    """
cdef inline double THIS noexcept nogil:
    return glm_unit(glm_word(glm_key(key_low, key_high), presentation, step, index))
""",
)

#: Brian function of the same arguments and a level: whether an event of that probability
#: happens, see `bernoulli`.
glm_bernoulli = _brian_function(
    "glm_bernoulli",
    lambda low, high, *arguments: bernoulli(_join_key(low, high), *arguments),
    """
SUPPORT_CODE_FUNC int THIS
{
    const uint64_t key = glm_key(key_low, key_high);
    const uint64_t word = glm_word(key, presentation, step >> 2, index);
    const int draw = (int)(word >> (16 * (step & 3)) & 0xFFFF);
    if (draw + 1 <= level) return 1;
    if (draw >= level) return 0;
    return glm_unit(glm_word(glm_mix64(key + 1), presentation, step, index)) < level - draw;
}
""",
    """
cdef inline bint THIS noexcept nogil:
    cdef uint64_t key = glm_key(key_low, key_high)
    cdef uint64_t word = glm_word(key, presentation, step >> 2, index)
    cdef int draw = <int>((word >> (16 * (step & 3))) & 0xFFFF)
    if draw + 1 <= level:
        return True
    if draw >= level:
        return False
    return glm_unit(glm_word(glm_mix64(key + 1), presentation, step, index)) < level - draw
""",
    more_arguments=["level"],
    returns=("boolean", bool),
)


def _step_function():
    """Return the Brian function of (t, dt) that gives the number of the time step.

    For GeNN, whose code knows only the time, and which takes ``int`` of a number for
    its truth value.
    """
    function = Function(
        lambda t, dt: np.floor(t / dt + 0.5).astype(int),
        arg_types=["float", "float"],
        return_type="integer",
        arg_units=[second, second],
        return_unit=1,
        stateless=True,
    )
    code = CPP_FUNCTION + (
        "SUPPORT_CODE_FUNC int glm_step(double t, double dt) { return (int)(t / dt + 0.5); }\n"
    )
    for target in ("cpp", "genn"):
        function.implementations.add_implementation(target, code, name="glm_step")
    return function


glm_step = _step_function()
