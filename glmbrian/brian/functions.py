"""Functions that the package adds to Brian's equations, in each target language.

The NumPy versions come from `glmbrian.core`; the C++ and Cython code is here.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from brian2 import Function, second
from brian2.utils.stringtools import get_identifiers

from ..core.activations import CLOGLOG, PROBIT, SIGMOID, Activation
from ..core.randomness import UniformsOf, bernoulli, join_key, uniforms
from .headers import native_code

#: Prefix of C++ functions.  GeNN defines the macro for code that runs on a GPU.
CPP_FUNCTION = """
#ifndef SUPPORT_CODE_FUNC
#define SUPPORT_CODE_FUNC static inline
#endif
"""

#: The hash in C++; Cython's differs only in its function headers.
_CPP_HASH = (
    native_code("hash.hpp")
    .replace("#include <cstdint>", "")
    .replace("static inline", "SUPPORT_CODE_FUNC")
)

_CPP_ARGUMENTS = "int64_t key_low, int64_t key_high, int64_t presentation, int64_t step, int64_t index"

_CPP_KEY = """
SUPPORT_CODE_FUNC uint64_t glm_key(int64_t key_low, int64_t key_high)
{
    return (uint64_t)(uint32_t)key_low | ((uint64_t)(uint32_t)key_high << 32);
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


def _function(name, in_numpy, cpp, cython, arg_types, returns=("float", 1), arg_units=None):
    """Make a Brian function from its code in each language; GeNN takes that in C++."""
    return_type, return_unit = returns
    function = Function(
        in_numpy,
        arg_types=arg_types,
        return_type=return_type,
        arg_units=arg_units or [1] * len(arg_types),
        return_unit=return_unit,
    )
    add = function.implementations.add_implementation
    # Brian's own implementation for `in_numpy` checks units, and therefore formats the
    # result as text in every call.
    add("numpy", in_numpy)
    for target in ("cpp", "genn"):
        add(target, CPP_FUNCTION + cpp, name=name)
    if cython is not None:
        add("cython", cython)
    return function


def _hash_function(name, in_numpy, cpp, cython, more_arguments=(), returns=("float", 1)):
    """Make a Brian function of (key_low, key_high, presentation, step, index, ...).

    `cpp` and `cython` are its code; in names that begin with ``glm_``, the function's name
    replaces this prefix.
    """
    arguments = ", ".join([_CPP_ARGUMENTS, *(f"double {argument}" for argument in more_arguments)])

    def own_names(code):
        # Each function needs its own copy of the hash with its own names, since the code of
        # an object that uses two functions contains both.
        return code.replace("glm_", f"{name}_").replace("THIS", f"{name}({arguments})")

    types = ["integer"] * 5 + ["float"] * len(more_arguments)
    codes = own_names(_CPP_HASH + _CPP_KEY + cpp), own_names(_CYTHON_WORD + cython)
    return _function(name, in_numpy, *codes, types, returns)


@lru_cache(maxsize=20)
def _joined(low, high):
    return int(join_key(low, high))


class _Uniforms:
    """`uniforms`, prepared for the indices of the last call: a group draws for all its neurons."""

    def __init__(self):
        self._draws = UniformsOf(np.zeros(0, dtype=int))

    def __call__(self, low, high, presentation, step, index):
        if not all(isinstance(value, np.integer) for value in (low, high, presentation, step)):
            return uniforms(join_key(low, high), presentation, step, index)
        draws = self._draws
        if draws.index is not index:
            if not (isinstance(index, np.ndarray) and index.base is None):
                return uniforms(join_key(low, high), presentation, step, index)
            self._draws = draws = UniformsOf(index)
        return draws(_joined(int(low), int(high)), int(presentation), int(step))


#: Brian function of (key_low, key_high, presentation, step, index): a uniform
#: draw from [0, 1), see `uniforms`.
glm_uniform = _hash_function(
    "glm_uniform",
    _Uniforms(),
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

#: Brian function of the same arguments and a level: whether an event with that probability
#: happens, see `bernoulli`.
glm_bernoulli = _hash_function(
    "glm_bernoulli",
    lambda low, high, *arguments: bernoulli(join_key(low, high), *arguments),
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


#: Brian function of (t, dt): the number of the time step.  For GeNN, whose code knows only the time,
#: and which treats ``int`` of a number as its truth value.
glm_step = _function(
    "glm_step",
    lambda t, dt: np.floor(t / dt + 0.5).astype(int),
    "SUPPORT_CODE_FUNC int glm_step(double t, double dt) { return (int)(t / dt + 0.5); }\n",
    None,
    ["float", "float"],
    ("integer", 1),
    arg_units=[second, second],
)


def _activation_function(name, in_numpy, code, cython_import):
    """Return the Brian function of the potential u that `code`, both C++ and Cython, computes.

    A function, unlike Brian's own ``clip``, has no branches that would keep the compiler from
    leaving it out where its value is not needed.
    """
    cython = f"""
from libc.math cimport {cython_import}
cdef inline double {name}(double u) noexcept nogil:
    return {code}
"""
    cpp = f"SUPPORT_CODE_FUNC double {name}(double u) {{ return {code}; }}\n"
    return _function(name, in_numpy, cpp, cython, ["float"])


#: What expressions of activations may use, by name.
_ACTIVATION_FUNCTIONS = {
    "normal_cdf": _activation_function(
        "normal_cdf", PROBIT.probability, "0.5 * erfc(-u * 0.70710678118654752440)", "erfc"
    ),
    # exp takes a third of the time of tanh.  Where it overflows, the results are 0 and 1.
    "logistic": _activation_function("logistic", SIGMOID.probability, "1.0 / (1.0 + exp(-u))", "exp"),
    "gumbel_cdf": _activation_function(
        "gumbel_cdf", CLOGLOG.probability, "-expm1(-exp(u))", "exp, expm1"
    ),
}


def namespace_of(activation: Activation) -> dict[str, Any]:
    """Return the functions, by name, that the expression of an `Activation` uses."""
    used = get_identifiers(activation.expression)
    functions = {name: one for name, one in _ACTIVATION_FUNCTIONS.items() if name in used}
    return {**functions, **activation.namespace}
