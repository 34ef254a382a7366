"""Tests of glmbrian.core.randomness."""

import numpy as np
import pytest
from brian2 import Network, NeuronGroup, prefs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from glmbrian.brian.functions import glm_bernoulli, glm_uniform
from glmbrian.core import randomness
from glmbrian.core.randomness import (
    bernoulli,
    derive_keys,
    draws16,
    hashes,
    mix64,
    shuffled,
    split_key,
    uniforms,
)

quick = settings(max_examples=100, derandomize=True, deadline=None)
keys = st.integers(0, 2**64 - 1)
counters = st.integers(0, 2**31 - 1)

KEY = 0x0123456789ABCDEF
MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
#: The draws below are fixed, so a test fails always or never; by chance it would do
#: so once in 10**4.
UNLIKELY = 1e-4


# The hash


def test_splitmix64_reference():
    """The published first outputs of SplitMix64 for the seed 1234567."""
    seed = 1234567
    states = [(seed + GOLDEN * (n + 1)) & MASK for n in range(5)]
    assert mix64(np.array(states, dtype=np.uint64)).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def python_mix64(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def python_hash(key, presentation, step, index):
    base = python_mix64((key + GOLDEN * (presentation + 1)) & MASK)
    return python_mix64((base + GOLDEN * ((step << 32 | index) + 1)) & MASK)


@quick
@given(key=keys, presentation=counters, step=counters, index=counters)
def test_draws_in_pure_python(key, presentation, step, index):
    counter = presentation, step, index
    assert int(hashes(key, *counter)) == python_hash(key, *counter)
    assert float(uniforms(key, *counter)) == (python_hash(key, *counter) >> 11) / 2**53
    word = python_hash(key, presentation, step // 4, index)
    assert int(draws16(key, *counter)) == word // 2 ** (16 * (step % 4)) % 2**16


@pytest.mark.parametrize("draw", [hashes, uniforms, draws16])
def test_many_at_once_or_one_by_one(draw):
    """A draw depends on its counters alone, not on what else is drawn."""
    axes = np.arange(3)[:, None, None], np.arange(5)[:, None], np.arange(4)
    block = draw(KEY, *axes)
    assert block.shape == (3, 5, 4)
    for where, value in np.ndenumerate(block):
        assert draw(KEY, *where) == value


def test_steps_go_on_beyond_32_bits():
    """A draw of four steps takes up 2**34 of them, a uniform draw 2**32."""
    steps = np.arange(4) + 2 ** np.array([[0], [32], [33], [34], [35], [40], [62]])
    for draw in (uniforms, draws16):
        block = draw(KEY, 0, steps, np.arange(50)[:, np.newaxis, np.newaxis])
        apart = block[:, :, np.newaxis] == block[:, np.newaxis, :]
        assert apart.all(axis=(0, 3)).sum() == len(steps)  # each equals itself alone
    np.testing.assert_array_equal(
        hashes(KEY, 5, [3, 3 + 2**32, 3], 7)[[0, 2]], hashes(KEY, 5, [3, 3], 7)
    )


def test_a_second_draw_decides_between_whole_levels():
    draws = draws16(KEY, 0, 0, np.arange(4000)).astype(float)
    counters = 0, 0, np.arange(4000)
    assert not bernoulli(KEY, *counters, draws).any()
    assert bernoulli(KEY, *counters, draws + 1).all()
    happens = bernoulli(KEY, *counters, draws + 0.3)
    assert stats.binomtest(int(happens.sum()), 4000, 0.3).pvalue > UNLIKELY
    # more of the level only adds events, and a scalar is drawn as in an array
    assert not (happens & ~bernoulli(KEY, *counters, draws + 0.4)).any()
    assert [bool(bernoulli(KEY, 0, 0, i, draws[i] + 0.3)) for i in range(50)] == happens[:50].tolist()


@pytest.mark.parametrize("level", [0.65536, 1.5])
def test_levels_below_and_between_whole_numbers_are_probabilities(level):
    n = 4 * 10**6
    happened = int(bernoulli(KEY, 3, np.arange(n // 4)[:, np.newaxis], np.arange(4), level).sum())
    assert stats.binomtest(happened, n, level / 65536).pvalue > UNLIKELY


def test_hashes_do_not_repeat():
    block = hashes(KEY, *np.ogrid[:40, :40, :40])
    assert len(np.unique(block)) == block.size


# Statistics, with fixed keys


def block_of_draws(kind, key=KEY):
    """Draws in [0, 1) over 64 presentations, 32 steps and 64 indices."""
    counters = np.ogrid[:64, :32, :64]
    return uniforms(key, *counters) if kind == "uniform" else draws16(key, *counters) / 2**16


every_kind = pytest.mark.parametrize("kind", ["uniform", "draw16"])


@every_kind
def test_range_mean_and_variance(kind):
    x = block_of_draws(kind)
    assert x.min() >= 0 and x.max() < 1
    # four standard errors
    assert abs(x.mean() - 1 / 2) < 4 * np.sqrt(1 / 12 / x.size)
    assert abs(x.var() - 1 / 12) < 4 * np.sqrt(1 / 180 / x.size)


@every_kind
@pytest.mark.parametrize("scale", [1, 256], ids=["high bits", "low bits"])
def test_chi_square(kind, scale):
    x = np.floor(block_of_draws(kind) * 256 * scale).astype(int) % 256
    assert stats.chisquare(np.bincount(x.ravel(), minlength=256)).pvalue > UNLIKELY


@every_kind
@pytest.mark.parametrize("axis, distance", [(0, 1), (1, 1), (1, 2), (1, 3), (1, 4), (2, 1)])
def test_neighbours_are_independent(kind, axis, distance):
    """In presentation, in step (four share a hash) and in index."""
    x = np.floor(np.moveaxis(block_of_draws(kind), axis, 0) * 16).astype(int)
    pairs = 16 * x[:-distance] + x[distance:]
    assert stats.chisquare(np.bincount(pairs.ravel(), minlength=256)).pvalue > UNLIKELY


@every_kind
@pytest.mark.parametrize("other", [KEY + 1, KEY ^ (1 << 63)])
def test_keys_are_independent(kind, other):
    x, y = (np.floor(block_of_draws(kind, key) * 16).astype(int) for key in (KEY, other))
    assert stats.chisquare(np.bincount((16 * x + y).ravel(), minlength=256)).pvalue > UNLIKELY


# Shuffling


@quick
@given(key=keys, epoch=counters, n=st.integers(0, 300))
def test_shuffled_is_a_permutation(key, epoch, n):
    assert sorted(shuffled(key, epoch, n)) == list(range(n))


def test_shuffled_differs_by_epoch_and_key():
    orders = [shuffled(key, epoch, 50).tolist() for key in (1, 2) for epoch in (0, 1)]
    orders.append(list(range(50)))
    assert len(set(map(tuple, orders))) == 5
    assert shuffled(1, 0, 50).tolist() == orders[0]


def test_shuffled_leaves_each_place_to_each_presentation():
    counts = np.zeros((6, 6))
    for epoch in range(6000):
        counts[np.arange(6), shuffled(KEY, epoch, 6)] += 1
    # The rows and the columns sum to 6000, so that 5 by 5 of the counts are free.
    chi_square = ((counts - 1000) ** 2 / 1000).sum()
    assert stats.chi2.sf(chi_square * 5 / 6, 25) > UNLIKELY


# Keys


SOURCES = {
    "int": lambda: 42,
    "numpy int": lambda: np.int64(42),
    "RandomState": lambda: np.random.RandomState(42),
    "Generator": lambda: np.random.default_rng(42),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_keys_are_reproducible_and_distinct(source):
    first, second = derive_keys(source(), 0, 1)
    assert derive_keys(source(), 1, 0) == [second, first]
    assert first != second
    assert all(type(key) is int and 0 <= key < 2**64 for key in (first, second))


def test_keys_of_different_seeds_differ():
    assert len({derive_keys(seed, 0)[0] for seed in [0, 1, 2, 2**40, 2**100]}) == 5


def test_keys_of_an_int_never_change():
    """A saved seed has to give the same spikes with the next NumPy as well."""
    assert derive_keys(0, 0, 1) == [8668861027912758289, 4881901421217228719]


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_moves_on(make):
    generator = make(0)
    assert derive_keys(generator, 0) != derive_keys(generator, 0)


@pytest.mark.parametrize("random_state", [None, np.random])
def test_keys_from_the_global_generator(random_state):
    state = np.random.get_state()
    try:
        np.random.seed(5)
        first = derive_keys(random_state, 0)
        assert derive_keys(random_state, 0) != first
        np.random.seed(5)
        assert derive_keys(random_state, 0) == first
    finally:
        np.random.set_state(state)


@pytest.mark.parametrize("bad", [-1, 1.0, True, np.True_, "0", [1], np.random.SeedSequence(0)])
def test_bad_random_state(bad):
    with pytest.raises(ValueError, match="^random_state must be None, a non-negative integer"):
        derive_keys(bad, 0)


@quick
@given(key=keys)
def test_split_keys_are_32_bit_and_lose_nothing(key):
    low, high = split_key(key)
    assert all(type(half) is int and -(2**31) <= half < 2**31 for half in (low, high))
    assert int(randomness.join_key(low, high)) == key


# The Brian functions


@pytest.mark.parametrize("target", ["numpy", pytest.param("cython", marks=pytest.mark.compiled)])
@pytest.mark.parametrize("key", [KEY, MASK, 0x80000000, 0x7FFFFFFFFFFFFFFF])
def test_brian_functions_draw_the_same(target, key, monkeypatch):
    monkeypatch.setitem(prefs, "codegen.target", target)
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 2**31, (3, 400)).T
    columns[::2] = rng.integers(0, 10, (200, 3))
    columns[::3, :2] += 2**36  # of the presentation and the step
    low, high = split_key(key)
    # The second draw decides for half of the levels.
    level = rng.random(400) * 65536
    level[::2] = (draws16(key, *columns.T) + rng.random(400))[::2]
    group = NeuronGroup(
        400,
        """presentation : integer (constant)
        step : integer (constant)
        index : integer (constant)
        key_low : integer (shared, constant)
        key_high : integer (shared, constant)
        level : 1 (constant)
        u : 1
        b : boolean""",
        namespace={"glm_uniform": glm_uniform, "glm_bernoulli": glm_bernoulli},
        dtype={"presentation": np.int64, "step": np.int64},
    )
    group.presentation, group.step, group.index = columns.T
    group.key_low, group.key_high, group.level = low, high, level
    group.run_regularly(
        """u = glm_uniform(key_low, key_high, presentation, step, index)
        b = glm_bernoulli(key_low, key_high, presentation, step, index, level)"""
    )
    Network(group).run(group.dt)
    np.testing.assert_array_equal(group.u[:], uniforms(key, *columns.T))
    np.testing.assert_array_equal(group.b[:], bernoulli(key, *columns.T, level))
    assert 60 < group.b[:][::2].sum() < 140
