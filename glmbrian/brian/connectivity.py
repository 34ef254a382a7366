"""Pairs of neurons that synapses connect, and expressions in their indices.

NumPy finds the pairs when synapses are created. So the order of synapses is known on every
device, weights can be set before a run, and random pairs are the same everywhere.
"""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.randomness import RandomState, derive_keys, uniforms
from ..support.validation import check_dense, check_size, real

_CONNECTION_DRAWS = 7

_FUNCTIONS = {"abs": abs, "int": int, "min": min, "max": max, "round": round}

_MATHEMATICS = {
    name: getattr(np, name)
    for name in (
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "tanh",
        "floor",
        "ceil",
        "clip",
        "sign",
        "pi",
    )
}


def find_pairs(
    connect: Any,
    n_source: int,
    n_target: int,
    p: float = 1.0,
    random_state: RandomState = None,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the index arrays of the connected pairs.

    Parameters
    ----------
    connect : bool, str or pair of array_like of int
        All pairs or none, a condition in i, j, N_pre, N_post and ``rand()``, or index arrays.
    n_source, n_target : int
    p : float
        Probability of connecting each of these pairs.
    random_state : None, int, RandomState or Generator

    Returns
    -------
    pre, post : ndarray of int32, shape (n_pairs,)

    Raises
    ------
    TypeError, ValueError
        The message names the argument ``connect``, ``p`` or ``random_state``.
    """
    p = real(p, "p", 0, 1)
    # Use NumPy's global generator only if something is drawn.
    key = functools.cache(lambda: derive_keys(random_state, _CONNECTION_DRAWS)[0])
    if random_state is not None:
        key()
    if isinstance(connect, (bool, np.bool_)):
        pre, post = _all_pairs(n_source, n_target) if connect else np.zeros((2, 0), dtype=np.int32)
    elif isinstance(connect, str):
        pre, post = _all_pairs(n_source, n_target)
        draws = _Draws(key, pre, post)
        names = {"N_pre": n_source, "N_post": n_target, "rand": draws}
        allowed = "a condition in i, j, N_pre, N_post and rand(), such as 'i != j' or 'rand() < 0.1'"
        chosen = _evaluate(connect, "connect", pre, post, names, allowed, draws.start)
        chosen = np.array([bool(one) for one in chosen], dtype=bool)
        pre, post = pre[chosen], post[chosen]
    else:
        pre, post = _checked_indices(connect, n_source, n_target)
    if p < 1:
        chosen = uniforms(key(), 0, pre, post) < p
        pre, post = pre[chosen], post[chosen]
    return pre, post


def _all_pairs(n_source, n_target):
    check_size(n_source * n_target, "connect: pairs", "connect some pairs by their index arrays (i, j)")
    pre = np.repeat(np.arange(n_source, dtype=np.int32), n_target)
    return pre, np.tile(np.arange(n_target, dtype=np.int32), n_source)


def _checked_indices(connect, n_source, n_target):
    check_dense(connect, "connect", "its pairs (i, j): connect.toarray().nonzero()")
    wrong = (
        "connect must be True, False, a condition in i and j, or a pair of integer arrays "
        f"(i, j), got {connect!r}"
    )
    try:
        indices = [np.asarray(index) for index in connect]
    except (TypeError, ValueError):
        raise TypeError(wrong) from None
    # An empty list is an array of float.
    if len(indices) != 2 or any(index.size and index.dtype.kind not in "iu" for index in indices):
        raise TypeError(wrong)
    pre, post = indices
    if pre.ndim != 1 or pre.shape != post.shape:
        raise ValueError(
            f"connect: i and j must have the same length, got {pre.shape} and {post.shape}"
        )
    for index, size, name in ((pre, n_source, "i"), (post, n_target, "j")):
        if index.size and (index.min() < 0 or index.max() >= size):
            raise ValueError(
                f"connect: {name} must be from 0 to {size - 1}, got {index.min()} to {index.max()}"
            )
    pre, post = pre.astype(np.int32), post.astype(np.int32)
    check_distinct(pre, post)
    return pre, post


def check_distinct(pre: np.ndarray, post: np.ndarray) -> None:
    """Raise a ValueError if a pair occurs twice."""
    if np.unique(np.stack([pre, post]), axis=1).shape[1] != pre.size:
        raise ValueError("connect: a pair (i, j) is given twice, or is connected already")


def evaluate_weights(
    expression: str, pre: np.ndarray, post: np.ndarray, n_source: int, n_target: int
) -> NDArray[np.float64]:
    """Return the values of an expression for each pair, shape (n_pairs,)."""
    names = {"N_pre": n_source, "N_post": n_target, **_MATHEMATICS, "rand": _refuse, "randn": _refuse}
    allowed = "numbers, or an expression in i, j, N_pre and N_post such as 'exp(-abs(i - j))'"
    values = _evaluate(expression, "w", pre, post, names, allowed)
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"w must be {allowed}; {expression!r} does not give numbers: {error}"
        ) from None


def _refuse():
    raise ValueError(
        "draw random weights in NumPy: write "
        "synapses.w = numpy.random.default_rng(1).normal(size=synapses.w.shape)"
    )


def _evaluate(expression, name, pre, post, names, allowed, start=lambda position: None):
    """Return the values of an expression for each pair, as a list.

    Pairs are evaluated one at a time, so Python's `and` and `or` work; `start` is called
    with the position of each pair.
    """
    names = {**_FUNCTIONS, **names}
    values = []
    try:
        code = compile(expression.strip(), name, "eval")
        for position, (i, j) in enumerate(zip(pre.tolist(), post.tolist())):
            start(position)
            values.append(eval(code, {"__builtins__": {}}, {**names, "i": i, "j": j}))
    except Exception as error:
        raise ValueError(f"{name} must be {allowed}; {expression!r} failed: {error}") from None
    return values


class _Draws:
    """``rand()`` in a condition: a uniform draw for each pair and call."""

    def __init__(self, key, pre, post):
        self.key, self.pre, self.post = key, pre, post
        self.columns = []  # one per call

    def start(self, position):
        self.position, self.n_calls = position, 0

    def __call__(self):
        self.n_calls += 1
        if self.n_calls > len(self.columns):
            self.columns.append(uniforms(self.key(), self.n_calls, self.pre, self.post))
        return self.columns[self.n_calls - 1][self.position]
