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

#: Bernoulli probabilities of inputs are compared with 16-bit draws, four of
#: which come from one 64-bit hash.
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
        Broadcast against each other; `step` and `index` below 2**32.

    Returns
    -------
    ndarray of uint64
    """
    counter = (_unsigned(step) << np.uint64(32)) | _unsigned(index)
    return _hashes(_hashes(np.uint64(key), presentation), counter)


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


def shuffled(key, epoch, n):
    """Return the order in which the `n` presentations of an `epoch` come."""
    return np.argsort(hashes(key, epoch, 0, np.arange(n)), kind="stable")


def check_random_state(random_state, name="random_state"):
    """Raise unless `derive_keys` takes this random state."""
    if random_state is None or random_state is np.random:
        return
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return
    is_integer = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    if not is_integer or random_state < 0:
        raise ValueError(
            f"{name} must be None, a non-negative integer, a numpy RandomState or "
            f"a numpy Generator, got {random_state!r}"
        )


def derive_keys(random_state, *purposes):
    """Return one independent 64-bit key a purpose.

    Parameters
    ----------
    random_state : None, int, numpy.random.RandomState or numpy.random.Generator
        ``None`` draws from NumPy's global generator, which `brian2.seed` sets on
        the runtime device.
    *purposes : int
        Names of the streams: the same purpose gives the same key.

    Returns
    -------
    list of int
    """
    root = _entropy(random_state)
    return [
        int(np.random.SeedSequence(root, spawn_key=(purpose,)).generate_state(1, np.uint64)[0])
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
SUPPORT_CODE_FUNC uint64_t %(name)s_word(int64_t key_low, int64_t key_high,
                                     int64_t presentation, int64_t step, int64_t index)
{
    const uint64_t key = (uint64_t)(uint32_t)key_low | ((uint64_t)(uint32_t)key_high << 32);
    return %(name)s_hash(%(name)s_hash(key, (uint64_t)presentation),
                         ((uint64_t)step << 32) | (uint64_t)index);
}
"""

_CYTHON_WORD = """
from libc.stdint cimport int64_t, uint32_t, uint64_t
cdef inline uint64_t {name}_mix64(uint64_t z) noexcept nogil:
    z = (z ^ (z >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t>0x94D049BB133111EB
    return z ^ (z >> 31)
cdef inline uint64_t {name}_hash(uint64_t key, uint64_t counter) noexcept nogil:
    return {name}_mix64(key + <uint64_t>0x9E3779B97F4A7C15 * (counter + 1))
cdef inline uint64_t {name}_word(int64_t key_low, int64_t key_high, int64_t presentation,
                                 int64_t step, int64_t index) noexcept nogil:
    cdef uint64_t key = <uint64_t><uint32_t>key_low | (<uint64_t><uint32_t>key_high << 32)
    return {name}_hash({name}_hash(key, <uint64_t>presentation),
                       (<uint64_t>step << 32) | <uint64_t>index)
"""


def _brian_function(name, numpy_draw, cpp_result, cython_result, c_type):
    """Make a Brian function of (key_low, key_high, presentation, step, index)."""

    def in_numpy(key_low, key_high, presentation, step, index):
        return numpy_draw(_join_key(key_low, key_high), presentation, step, index)

    function = Function(
        in_numpy,
        arg_types=["integer"] * 5,
        return_type="float" if c_type == "double" else "integer",
        arg_units=[1] * 5,
        return_unit=1,
        stateless=True,
    )
    # The implementation that Brian makes of `in_numpy` checks units, and for that formats
    # the result as text, in every call.
    function.implementations.add_implementation("numpy", in_numpy)
    # Each function carries its own copy of the hash under its own names, since
    # a code object that uses two of them includes both texts.
    cpp_hash = CPP_HASH.replace("glm_", f"{name}_") + _CPP_WORD % {"name": name}
    code = f"{CPP_FUNCTION}{cpp_hash}SUPPORT_CODE_FUNC {c_type} {name}({_CPP_ARGUMENTS})\n{{\n    {cpp_result}\n}}\n"
    for target in ("cpp", "genn"):
        function.implementations.add_implementation(target, code, name=name)
    function.implementations.add_implementation(
        "cython",
        _CYTHON_WORD.format(name=name)
        + f"cdef inline {c_type} {name}({_CPP_ARGUMENTS}) noexcept nogil:\n    {cython_result}\n",
    )
    return function


#: Brian function of (key_low, key_high, presentation, step, index): a uniform
#: draw from [0, 1), see `uniforms`.
glm_uniform = _brian_function(
    "glm_uniform",
    uniforms,
    "return (double)(glm_uniform_word(key_low, key_high, presentation, step, index) >> 11)"
    " * (1.0 / 9007199254740992.0);",
    "return <double>(glm_uniform_word(key_low, key_high, presentation, step, index) >> 11)"
    " * (1.0 / 9007199254740992.0)",
    "double",
)

#: Brian function of the same arguments: an integer from [0, 65536), see `draws16`.
glm_draw16 = _brian_function(
    "glm_draw16",
    lambda *arguments: draws16(*arguments).astype(np.int32),
    "return (int)((glm_draw16_word(key_low, key_high, presentation, step >> 2, index)"
    " >> (16 * (step & 3))) & 0xFFFF);",
    "return <int>((glm_draw16_word(key_low, key_high, presentation, step >> 2, index)"
    " >> (16 * (step & 3))) & 0xFFFF)",
    "int",
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
