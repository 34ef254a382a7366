"""All ways to set and read weights, and the pairs that synapses connect."""

import copy
import pickle

import numpy as np
import pytest
from brian2 import (
    Network,
    NeuronGroup,
    SpikeGeneratorGroup,
    StateMonitor,
    defaultclock,
    device,
    ms,
    mV,
    prefs,
    seed,
    set_device,
)

import glmbrian as glm
from glmbrian.brian.internals import CPP_PROGRAM_CAN_STOP  # Brian 2.6 or newer

BASIS = glm.IndicatorBasis(2)
PLACES = ["numpy", "cpp_standalone"]


def choose(place):
    """Simulate on the runtime device, or describe a program that is never compiled."""
    defaultclock.dt = 1 * ms
    if place == "cpp_standalone":
        set_device("cpp_standalone", directory=None, build_on_run=False)


def make(connect="i != j", n=3, **keywords):
    neurons = glm.GLMNeurons(n, {"coupling": BASIS}, feedback_basis=BASIS, random_state=1)
    return neurons, glm.GLMSynapses(neurons, neurons, "coupling", connect, **keywords)


# ------------------------------------------------------------------ weights by index


@pytest.mark.parametrize("place", PLACES)
def test_weights_are_set_by_index(place):
    choose(place)
    _, synapses = make(True)
    expected = np.zeros((3, 3, 2))
    for array in (synapses.w, expected):
        array[:] = 1
        array[0, 1] = 2
        array[2, :, 1] *= 5
        array[[1, 2], [0, 1]] = [[3, 4], [5, 6]]
        array[array == 1] -= 0.5
    np.testing.assert_array_equal(synapses.w, expected)
    synapses.w += 1
    synapses.w *= 2
    synapses.w[1] /= 4
    expected = (expected + 1) * 2
    expected[1] /= 4
    np.testing.assert_array_equal(synapses.w, expected)


@pytest.mark.parametrize("place", PLACES)
def test_feedback_weights_are_set_by_index(place):
    choose(place)
    neurons, _ = make()
    neurons.feedback_weights[:] = -5
    neurons.feedback_weights[0] = [1, 2]
    neurons.feedback_weights[-1, 1] += 3
    neurons.feedback_weights *= 2
    np.testing.assert_array_equal(neurons.feedback_weights, [[2, 4], [-10, -10], [-10, -4]])
    np.testing.assert_array_equal(neurons.feedback_kernels(), neurons.feedback_weights)


def test_pairs_without_a_synapse_keep_no_weight():
    _, synapses = make("i != j")
    synapses.w[:] = 1
    synapses.w[0] = 2  # the neuron itself is left out
    assert synapses.w[:, :, 0].tolist() == [[0, 2, 2], [1, 0, 1], [1, 1, 0]]
    w = synapses.w
    w[1, 1] = 0
    with pytest.raises(ValueError, match=r"^w: there is no synapse at the index \(1, 1\)"):
        w[1, 1] = 7
    np.testing.assert_array_equal(w, synapses.w)
    assert w[1, 1].tolist() == [0, 0]


def test_weights_that_were_read_stay_as_they_were():
    neurons, synapses = make(True)
    synapses.w = 1
    before = synapses.w
    synapses.w = 2
    assert (before == 1).all() and (synapses.w - before == 1).all()
    before[0, 0] = 5  # sets this weight, and does not reset the others
    assert synapses.w[0, 0].tolist() == [5, 5] and (synapses.w[1:] == 2).all()


def test_weights_are_an_array_like_any_other():
    _, synapses = make(True)
    synapses.w = values = np.random.default_rng(0).normal(size=(3, 3, 2))
    w = synapses.w
    assert isinstance(w, np.ndarray) and repr(w) == repr(values) and str(w) == str(values)
    for result in (
        w * 2,
        w[[0, 2]],
        w.sum(axis=-1),
        np.concatenate([w, w]),
        np.where(w > 0, w, 0),
        w @ [1, 2],
    ):
        assert type(result) is np.ndarray
        result[0] = 7  # of its own
    np.testing.assert_array_equal(synapses.w, values)
    for again in (copy.deepcopy(w), pickle.loads(pickle.dumps(w)), w.copy(), np.array(w)):
        again[:] = 7
    np.testing.assert_array_equal(synapses.w, values)
    assert type(w[0, 1, 1]) is np.float64 and w[0, 1, 1] == values[0, 1, 1]


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w[0].__setitem__(1, 7),
        lambda w: w.T.__setitem__(0, 7),
        lambda w: w[0].fill(7),
        lambda w: w.sort(),
        lambda w: w.ravel().__imul__(7),
        lambda w: np.asarray(w).__setitem__(0, 7),
        lambda w: np.add.at(w, 0, 7),
    ],
)
def test_no_change_is_silently_lost(change):
    _, synapses = make(True)
    synapses.w = np.arange(18)[::-1].reshape(3, 3, 2)
    with pytest.raises(ValueError, match="read-only|part of a parameter"):
        change(synapses.w)


def test_weights_are_changed_in_place():
    _, synapses = make(True)
    synapses.w = values = np.arange(1.0, 19).reshape(3, 3, 2)
    for row in synapses.w:
        row /= row.sum()
    expected = values / values.sum(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(synapses.w, expected)
    few = expected > 0.2
    np.multiply(synapses.w, 2, out=synapses.w, where=few)
    np.testing.assert_allclose(synapses.w, np.where(few, 2 * expected, expected))
    synapses.w.fill(3)
    assert (synapses.w == 3).all()


def test_a_copy_of_weights_is_changed_in_place():
    _, synapses = make(True)
    synapses.w = 1

    def double(array):
        array *= 2

    changed = synapses.w.copy()
    double(changed)
    np.add(changed, 1, out=changed)
    assert (changed == 3).all() and (synapses.w == 1).all()


@pytest.mark.parametrize(
    "item, value, error, message",
    [
        (0, np.nan, ValueError, "w must be finite"),
        ((0, 1), "2", TypeError, "w must be an array of numbers"),
        ((0, 1), 2 * mV, TypeError, "w must be plain numbers"),
        ((0, 1), [1, 2, 3], ValueError, "broadcast"),
        (3, 1, IndexError, "out of bounds"),
    ],
)
def test_bad_items(item, value, error, message):
    _, synapses = make(True)
    with pytest.raises(error, match=message):
        synapses.w[item] = value
    assert not synapses.w.any()


def test_weights_given_by_an_expression():
    _, synapses = make("i != j")
    synapses.w = "exp(-abs(i - j)) + N_pre"
    i, j = np.mgrid[:3, :3]
    expected = np.where(i != j, np.exp(-abs(i - j)) + 3, 0)
    np.testing.assert_allclose(synapses.w, np.stack([expected, expected], axis=2))
    for bad, message in (
        ("rand()", r"write synapses.w = numpy.random.default_rng\(1\)"),
        ("1 +", "w must be numbers, or an expression in i, j"),
        ("k", "name 'k' is not defined"),
        ("log(0 * i) * 0", "w must be finite"),
        ("'a'", "does not give numbers"),
    ):
        with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
            synapses.w = bad
    np.testing.assert_allclose(synapses.w[:, :, 0], expected)


def test_variables_that_are_not_there_say_what_is():
    _, synapses = make()
    with pytest.raises(ValueError, match="no variable 'w': .* w_0, w_1"):
        StateMonitor(synapses, "w", record=True)
    assert "w" not in synapses.variables and "w_0" in synapses.variables


# ------------------------------------------------------------- standalone, before and after


@pytest.mark.parametrize("with_trainer", [False, True])
def test_standalone_weights_are_known_until_a_run(with_trainer):
    choose("cpp_standalone")
    inputs = SpikeGeneratorGroup(2, [0], [0] * ms)
    neurons = glm.GLMNeurons(2, BASIS, feedback_basis=BASIS)
    neurons.bias, neurons.feedback_weights = -2, 1
    synapses = glm.GLMSynapses(inputs, neurons, connect="i <= j")
    assert not synapses.w.any()
    synapses.w = 0.25
    synapses.w[0, 1] = 3
    assert synapses.w[:, :, 0].tolist() == [[0.25, 3], [0, 0.25]]
    assert synapses.kernels()[0, 1].tolist() == [3, 3]
    synapses.w_0 = 7  # Brian's own names
    with pytest.raises(NotImplementedError, match="w_0|as a whole"):
        synapses.w
    synapses.w = 0.25
    network = Network(inputs, neurons, synapses)
    if with_trainer:
        network.add(glm.Trainer(neurons, synapses, 2, [0], rule="rate"))
    network.run(2 * ms)

    def read_weights():
        return synapses.w[:, :, 0].tolist(), synapses.kernels()[0, 1].tolist()

    reads = [
        lambda: neurons.feedback_weights,
        lambda: neurons.feedback_kernels(),
        lambda: neurons.bias[:],
        lambda: neurons.firing_probability[:],
        lambda: glm.GLMPopulation.from_network(neurons, synapses),
    ]
    if with_trainer:
        reads += [lambda: synapses.w, read_weights, lambda: glm.plotting.plot_kernels(synapses)]
        with pytest.raises(NotImplementedError):
            synapses.w *= 2
    else:  # whole rows of weights are added, by code that cannot change them
        assert read_weights() == ([[0.25, 0.25], [0, 0.25]], [0.25, 0.25])
    for read in reads:
        with pytest.raises(NotImplementedError):
            read()
    synapses.w, neurons.feedback_weights = 1, 2
    assert synapses.w[0, 1].tolist() == [1, 1] and (neurons.feedback_weights == 2).all()
    network.run(1 * ms)
    if with_trainer:
        with pytest.raises(NotImplementedError):
            synapses.w
    else:
        assert synapses.w[0, 1].tolist() == [1, 1]


# ------------------------------------------------------------------ pairs


def pairs(synapses):
    return list(zip(np.asarray(synapses.i).tolist(), np.asarray(synapses.j).tolist()))


@pytest.mark.parametrize("place", PLACES)
def test_synapses_may_be_connected_later(place):
    choose(place)
    neurons, synapses = make(False)
    assert len(synapses.w.nonzero()[0]) == 0
    synapses.connect("i < j")
    synapses.w = 2
    synapses.connect(i=[2, 1], j=0)
    synapses.connect(i=2, j=2)
    w = synapses.w
    assert w[:, :, 0].tolist() == [[0, 2, 2], [0, 0, 2], [0, 0, 0]]
    w[2, 0] = 1
    assert synapses.w[:, :, 1].tolist() == [[0, 2, 2], [0, 0, 2], [1, 0, 0]]
    if place == "numpy":
        assert pairs(synapses) == [(0, 1), (0, 2), (1, 2), (2, 0), (1, 0), (2, 2)]
    neurons.clamp = [1, -1, -1]
    Network(neurons, synapses).run(2 * ms)
    if place == "numpy":
        np.testing.assert_array_equal(neurons.u[:], [0, 2, 2])


def test_random_pairs_are_the_same_everywhere():
    expected = None
    for place in PLACES:
        choose(place)
        found = []
        for connect in ("rand() < 0.5", "i != j and (rand() < 0.2 or rand() < 0.3)"):
            _, synapses = make(connect, n=30, random_state=3)
            synapses.w = 1
            found.append(synapses.w[:, :, 0])
        _, synapses = make(False, n=30)
        synapses.connect(p=0.25, random_state=3)
        synapses.w = 1
        found.append(synapses.w[:, :, 0])
        expected = expected or found
        for one, other in zip(found, expected):
            np.testing.assert_array_equal(one, other)
    shares = [one.mean() for one in expected]
    np.testing.assert_allclose(shares, [0.5, (1 - 0.8 * 0.7) * 29 / 30, 0.25], atol=0.06)
    assert not np.diag(expected[1]).any()


def test_random_pairs_follow_the_seed():
    found = []
    for number in (4, 4, 5):
        seed(number)
        found.append(pairs(make("rand() < 0.5", n=20)[1]))
    assert found[0] == found[1] != found[2]
    np.random.seed(1)
    before = np.random.get_state()[2]
    make("i != j")
    glm_neurons_draw_one = np.random.get_state()[2] - before
    assert glm_neurons_draw_one == 0  # their state is given, and these pairs are not random


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (dict(i=[0]), ValueError, "i and j must be given together"),
        (dict(i=[0], j="i"), TypeError, "i and j must be integers"),
        (dict(condition=True, i=[0], j=[0]), ValueError, "either a condition or i and j"),
        (dict(i=[0], j=[1]), ValueError, "connected already"),
        (dict(i=[0], j=[3]), ValueError, "connect: j must be from 0 to 2, got 3 to 3"),
        (dict(i=[0.0], j=[0]), TypeError, "integer arrays"),
        (dict(condition="i + "), ValueError, "connect must be a condition"),
        (dict(p=2), ValueError, "p must be"),
        (dict(p="0.5"), TypeError, "p must be"),
        (dict(random_state=-1), ValueError, "random_state must be"),
    ],
)
def test_bad_connections(arguments, error, message):
    _, synapses = make(([0], [1]))
    with pytest.raises(error, match=message):
        synapses.connect(**arguments)
    assert pairs(synapses) == [(0, 1)]


@pytest.mark.parametrize(
    "connect, error",
    [
        (([2**32], [0]), ValueError),
        ((np.array([2**63], dtype=np.uint64), [0]), ValueError),
        (([-1], [0]), ValueError),
        (([0.0], [0.0]), TypeError),
        (([True], [False]), TypeError),
        (([0], [0], [0]), TypeError),
        (3, TypeError),
    ],
)
def test_indices_are_not_silently_converted(connect, error):
    with pytest.raises(error, match="^connect"):
        make(connect)


def test_what_would_take_all_memory_is_refused():
    many = glm.GLMNeurons(2**20, BASIS)
    with pytest.raises(ValueError, match=r"connect: pairs: .*index arrays"):
        glm.GLMSynapses(many, many)
    some = glm.GLMSynapses(many, many, connect=([5, 2**20 - 1], [2**20 - 1, 7]))
    some.w = [1, 2]
    assert some.w_0[:].tolist() == [1, 1] and some.w_1[:].tolist() == [2, 2]
    with pytest.raises(ValueError, match="w: values: .*read w_0"):
        some.w


def test_no_pairs_can_be_added_after_a_trainer():
    neurons, synapses = make(([0], [1]))
    glm.Trainer(neurons, synapses, 2, [0])
    with pytest.raises(ValueError, match="before you create a Trainer"):
        synapses.connect(i=0, j=0)


# ------------------------------------------------------------------ other arguments


@pytest.mark.parametrize(
    "keywords, error, message",
    [
        (dict(pre="w_0 += 1"), TypeError, "pre cannot be given .* on_pre"),
        (dict(model="w : 1"), ValueError, "model: the name 'w' is taken"),
        (dict(model="w_0 : 1"), ValueError, "model: the name 'w_0' is taken"),
        (dict(dtype=float), TypeError, "dtype cannot be given"),
        (dict(foo=1), TypeError, "no argument 'foo'"),
        (dict(on_event={"per": "spike"}), ValueError, "no pathway 'per'.*are 'pre'"),
        (dict(on_event={"post": "spike"}), ValueError, "no pathway 'post'"),
        (
            dict(on_event="cross"),
            TypeError,
            r"source must be a group with the event 'cross', as in Neuron",
        ),
        (dict(on_event={"pre": 3}), TypeError, "on_event must be the name of an event"),
        (dict(method="euler"), ValueError, "method is for differential equations in model"),
        (dict(method_options={}), ValueError, "method_options is for differential equations in model"),
        (dict(delay=2), TypeError, "delay must be a single time"),
        (dict(delay=[1, 2] * ms), TypeError, "delay must be a single time .*synapses.delay"),
        (dict(delay=-1 * ms), ValueError, "delay must be at least 0"),
        (dict(dt=1), TypeError, "dt must be"),
        (dict(clock=1), TypeError, "clock must be"),
        (dict(name=1), TypeError, "name must be"),
        (dict(order=1.5), TypeError, "order must be"),
        (dict(namespace=3), TypeError, "namespace must be"),
        (dict(on_post=3), TypeError, "on_post must be"),
        (dict(on_post={"own": 3}), TypeError, "on_post must be"),
    ],
)
def test_bad_keywords(keywords, error, message):
    with pytest.raises(error, match=message):
        make(**keywords)


def test_spikes_of_the_target_may_change_weights():
    choose("numpy")
    prefs.codegen.target = "numpy"
    neurons, synapses = make(True, on_post="w_1 += rate", namespace={"rate": 0.5})
    neurons.clamp = [1, -1, -1]
    Network(neurons, synapses).run(3 * ms)
    assert synapses.w[:, 0].tolist() == [[0, 1.5]] * 3 and not synapses.w[:, 1:].any()


def test_synapses_describe_themselves():
    neurons, synapses = make(name="lateral")
    for text in (repr(synapses), synapses._repr_html_()):
        for part in ("GLMSynapses", "lateral", "6 synapses", neurons.name, "coupling", "n_basis=2"):
            assert part in text
    assert {"w", "w_0", "w_1", "delay", "connect", "kernels"} <= set(dir(synapses))


def test_weights_cannot_be_a_key_of_run_args():
    neurons, synapses = make()
    with pytest.raises(TypeError, match=r"synapses.run_args\(w\)"):
        {synapses.w: 1}
    with pytest.raises(ValueError, match=r"^w must have the shape \(3, 3, 2\)"):
        synapses.run_args(np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"^bias must have the shape \(3,\) or broadcast to it"):
        neurons.run_args(np.zeros(2))
    choose("cpp_standalone")
    neurons, synapses = make(([0, 2], [1, 0]))
    if not CPP_PROGRAM_CAN_STOP:
        with pytest.raises(NotImplementedError, match="Brian 2.6 or newer"):
            neurons.run_args(1)
        return
    views = synapses.run_args(np.arange(18).reshape(3, 3, 2))
    assert {view.name: values.tolist() for view, values in views.items()} == {
        "w_0": [2, 12],
        "w_1": [3, 13],
    }
    by_place = synapses.run_args("10 * i + j")
    assert [values.tolist() for values in by_place.values()] == [[1, 20], [1, 20]]
    assert [values.tolist() for values in neurons.run_args(1).values()] == [[1, 1, 1]]
    assert {view.name for view in neurons.run_args(1, 2)} == {
        "bias",
        "feedback_weight_0",
        "feedback_weight_1",
    }
    assert device.has_been_run is False


# ------------------------------------------------------------------ other events than spikes

CROSSES = np.array([2, 7, 12])


def with_event():
    """Return a group with spikes, and with events of neuron 1 in the steps of `CROSSES`."""
    return NeuronGroup(
        2,
        "x : 1",
        threshold="timestep(t, dt) % 4 == 1",
        reset="",
        events={"cross": "i == 1 and timestep(t, dt) % 5 == 2"},
    )


def learning_from(source, **arguments):
    """Return the parts of a network that learns one presentation, and the synapses that learn."""
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(1), random_state=1, stream="learns")
    neurons.bias = -1
    synapses = glm.GLMSynapses(source, neurons, **arguments)
    synapses.w = 1
    trainer = glm.Trainer(neurons, synapses, n_steps=14, labels=[0], learning_rate=1.0)
    return [source, neurons, synapses, trainer], synapses


@pytest.mark.parametrize(
    "target",
    [
        "numpy",
        pytest.param("cython", marks=[pytest.mark.compiled, pytest.mark.exhaustive]),
        pytest.param("cpp_standalone", marks=pytest.mark.compiled),
    ],
)
def test_an_event_of_the_source_counts_in_place_of_its_spikes(target):
    choose("numpy")
    prefs.codegen.target = "numpy"
    source = SpikeGeneratorGroup(2, np.ones(3, dtype=int), CROSSES * ms)
    parts, of_spikes = learning_from(source)
    Network(parts).run(14 * ms)
    expected = np.array(of_spikes.w)
    assert np.abs(expected[1] - 1).min() > 0.01 and not (expected[0] - 1).any()

    if target == "cpp_standalone":
        choose(target)
    else:
        prefs.codegen.target = target
    group, neurons = with_event(), glm.GLMNeurons(3, glm.IndicatorBasis(1), random_state=2)
    at_once = glm.GLMSynapses(group, neurons[:1], on_event={"pre": "cross"})
    delayed = glm.GLMSynapses(group, neurons[1:2], on_event="cross", delay=1 * ms)
    of_subgroup = glm.GLMSynapses(group[1:], neurons[2:], on_event={"pre": "cross"})
    u = StateMonitor(neurons, "u", record=True, when="end")
    parts, of_events = learning_from(group, on_event={"pre": "cross"})
    network = Network(neurons, at_once, delayed, of_subgroup, u, parts)
    for synapses in (at_once, delayed, of_subgroup):
        synapses.w = 1
    network.run(14 * ms)
    if target == "cpp_standalone":
        device.build(directory=None, with_output=False)
    reached = [np.flatnonzero(potential).tolist() for potential in np.array(u.u)]
    assert reached == [[3, 8, 13], [4, 9], [3, 8, 13]]
    np.testing.assert_allclose(of_events.w, expected, rtol=0, atol=1e-9)


def test_a_source_may_have_events_and_no_spikes():
    choose("numpy")
    prefs.codegen.target = "numpy"
    source = NeuronGroup(1, "x : 1", events={"cross": "timestep(t, dt) == 2"})
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(2), random_state=1)
    synapses = glm.GLMSynapses(source, neurons, on_event="cross")
    synapses.w = [1, 2]
    u = StateMonitor(neurons, "u", record=True, when="end")
    Network(source, neurons, synapses, u).run(6 * ms)
    assert u.u[0].tolist() == [0, 0, 0, 1, 2, 0]
