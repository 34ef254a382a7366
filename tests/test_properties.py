"""With any arguments, the package gives a right value or names the argument that is wrong.

Each `Call` below is one public function, with arguments that are right.  Hypothesis puts odd
values in the place of one or two of them.  A few hundred calls are made in the usual run, and
some 10,000 if the environment variable GLMBRIAN_EXHAUSTIVE is 1.
"""

import contextlib
import os
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from brian2 import Network, Quantity, SpikeGeneratorGroup, ms, mV, prefs, second
from brian2.core.base import BrianObjectException
from conftest import EXHAUSTIVE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError

import glmbrian as glm
from glmbrian.interop import Recording, from_neo, from_tonic

ALLOWED = (TypeError, ValueError, OSError, NotImplementedError, NotFittedError)
#: Calls that take more than milliseconds get a fraction of this.
EXAMPLES = 260 if EXHAUSTIVE else 12


@dataclass
class Call:
    """A function, and a valid value for each argument.

    function : called with all arguments by name
    right : makes the arguments, since calls may use them up
    check : raises unless the value that was returned is right
    also : words that may stand in a message for an argument
    costs : how many milliseconds a call takes that goes well, roughly
    counts : arguments that are numbers of something, of which many take long
    """

    name: str
    function: Callable
    right: Callable
    check: Callable = lambda value, arguments: None
    also: dict = field(default_factory=dict)
    costs: float = 10
    counts: tuple = ()
    varied: tuple = ()  # the arguments that odd values replace, by default all

    def __str__(self):
        return self.name


# ------------------------------------------------------------------ odd values

#: Made anew for each call, since generators are used up and arrays might be changed.
SCALARS = [
    *(lambda value=value: value for value in (None, True, False, 0, -1, 1, 2, 3, 255, -(2**63))),
    *(lambda value=value: value for value in (2**31, 2**32 + 1, 2**63, 2**64, 10**400)),
    *(lambda value=value: value for value in (0.5, 1.5, -0.0, 2.0, np.nan, np.inf, -np.inf)),
    *(lambda value=value: value for value in (1e308, -1e308, 1e-308, 5e-324, 1 + 2j)),
    *(lambda value=value: value for value in (Decimal("1"), Fraction(1, 3), Ellipsis, NotImplemented)),
    *(
        lambda value=value: value
        for value in ("", "x", "1", "nan", "a\nb 3", "rate", "sigmoid", "auto")
    ),
    *(lambda value=value: value for value in ("\x00", "ü" * 300, "../../x", b"bytes", bytearray(b"x"))),
    *(
        lambda value=value: value
        for value in (np.float32(1.5), np.int8(3), np.uint64(2**63), np.bool_(True))
    ),
    *(lambda value=value: value for value in (np.str_("x"), np.longdouble(0.5), np.float16(np.inf))),
    *(lambda value=value: value for value in (np.datetime64("2020-01-01"), np.timedelta64(1, "s"))),
    *(lambda value=value: value for value in (np.datetime64("NaT"), np.void(b"x"), np.complex64(1j))),
    *(
        lambda value=value: value
        for value in (3 * mV, 1 * ms, -1 * ms, 0 * ms, np.inf * second, [1, 2] * mV)
    ),
    *(lambda value=value: value for value in (len, int, Exception("x"), Network, np, st)),
    lambda: object(),
    lambda: (n for n in range(3)),
    lambda: iter([1, 2]),
    lambda: range(3),
    lambda: {1, 2},
    lambda: frozenset(),
    dict,
    lambda: {"a": 1},
    lambda: {1: [2]},
    list,
    lambda: [[]],
    lambda: (1, 2),
    lambda: [1, "a", None],
    lambda: [[1], [2, 3]],
    lambda: [[1, 2], None],
    lambda: [b"a", "a"],
    lambda: memoryview(b"abc"),
    lambda: slice(1, 2),
    lambda: np.random.RandomState(1),
    lambda: np.array(3),
    lambda: np.array([]),
    lambda: np.empty((0, 4)),
    lambda: np.empty((2, 0)),
    lambda: np.array([None, 1], dtype=object),
    lambda: np.array(["a", "b"]),
    lambda: np.array(["2020", "NaT"], dtype="datetime64[D]"),
    lambda: np.array([1j, 2]),
    lambda: np.zeros(3, dtype=[("x", int), ("t", float)]),
    lambda: np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    lambda: np.ma.masked,
    lambda: np.full((1, 1, 1, 1), 0.5),
    lambda: np.zeros((28, 28)),
    lambda: np.full((3, 4), np.nan),
    lambda: csr_matrix(np.eye(3)),
    lambda: np.array([Decimal(1), Fraction(1, 2)], dtype=object),
    lambda: np.arange(6).reshape(2, 3).view(np.matrix) if hasattr(np, "matrix") else None,
]

#: Ways in which an array that was right goes wrong (or does not).
CHANGES = {
    "as list": lambda array: array.tolist(),
    "as object": lambda array: array.astype(object),
    "as text": lambda array: array.astype(str),
    "as complex": lambda array: array.astype(complex),
    "as float32": lambda array: array.astype(np.float32),
    "as int8": lambda array: array.astype(np.int8),
    "as bool": lambda array: array.astype(bool),
    "as longdouble": lambda array: array.astype(np.longdouble),
    "as dates": lambda array: array.astype("int64").astype("datetime64[s]"),
    "big endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "not contiguous": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "negative": lambda array: -1.0 * array,
    "huge": lambda array: array * 1e300,
    "tiny": lambda array: array * 1e-300,
    "one NaN": lambda array: _with_first(array, np.nan),
    "one infinite": lambda array: _with_first(array, np.inf),
    "one 2**63": lambda array: _with_first(array, 2.0**63),
    "one -1": lambda array: _with_first(array, -1),
    "masked": lambda array: np.ma.masked_array(
        array, mask=np.arange(array.size).reshape(array.shape) == 0
    ),
    "nothing masked": lambda array: np.ma.masked_array(array),
    "a unit": lambda array: Quantity(array, dim=mV.dim),
    "transposed": lambda array: array.T,
    "one axis more": lambda array: array[np.newaxis],
    "one axis more at the end": lambda array: array[..., np.newaxis],
    "first only": lambda array: array[0],
    "without the last": lambda array: array[:-1],
    "nothing": lambda array: array[:0],
    "last axis empty": lambda array: array[..., :0],
    "twice": lambda array: np.concatenate([array, array]),
    "wider": lambda array: np.concatenate([array, array], axis=-1),
    "read only": lambda array: _read_only(array),
    "raveled": lambda array: array.ravel(),
    "generator": lambda array: (row for row in array),
    "ragged": lambda array: [*array.tolist()[:-1], [0]],
    "memory": lambda array: memoryview(np.ascontiguousarray(array)),
}


def _with_first(array, value):
    changed = array.astype(float)
    changed.flat[:1] = value
    return changed


def _read_only(array):
    copy = array.copy()
    copy.flags.writeable = False
    return copy


@st.composite
def odd_values(draw, right, is_count):
    """An odd value in place of the argument `right`."""
    if isinstance(right, np.ndarray) and right.ndim and draw(st.integers(0, 2)):
        name = draw(st.sampled_from(sorted(CHANGES)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about casts and overflows, which are intended
            try:
                return CHANGES[name](right)
            except (TypeError, ValueError):  # text has no negative
                return None
    value = draw(st.sampled_from(SCALARS))()
    if is_count and _is_large(value):
        return 2
    return value


def _is_large(value):
    with contextlib.suppress(Exception):
        return float(value) > 3 if not isinstance(value, (str, bytes)) else False
    return False


# ------------------------------------------------------------------ the calls

RANDOM = np.random.default_rng(0)
X = np.array([[1.0, 0.0, 0.5, 0.3], [0.0, 1.0, 0.2, 0.6]] * 3)
Y = np.array([0, 1] * 3)
TRAINS = (RANDOM.random((12, 2)) < 0.4).astype(float)
DRIVE = (RANDOM.random((12, 3)) < 0.4).astype(float)
BASIS = glm.CustomBasis([[1.0, 0.0], [0.5, 1.0]])


def finite(*arrays):
    for array in arrays:
        assert np.all(np.isfinite(np.asarray(array, dtype=float))), "not finite"


def finite_unless_huge(values, arguments):
    """Accept overflows, for plain maths."""
    numbers = [np.asarray(value) for value in arguments.values() if isinstance(value, np.ndarray)]
    if not any(np.abs(array).max(initial=0) > 1e100 for array in numbers):
        finite(*values)


def settings_of_classifier():
    return dict(
        decoding="first-to-spike", n_steps=3, n_basis=2, window=2, learning_rate=0.1, n_epochs=1,
        batch_size=1, weight_scale=0.01, bias_init=-1.0, activation="sigmoid", target_period=2,
        device="runtime", on_silence="potential", on_tie="potential", gpu=None, basis=None,
        random_state=1, start_state=None, verbose=False, scale_inputs=False, hidden=(),
        hidden_basis=None, hidden_feedback=None, credit="straight-through",
        learning_rate_schedule="constant", average=0.0, weight_decay=0.0, early_stopping=False,
        validation_fraction=0.1, n_iter_no_change=10, tol=1e-4, adversarial=None, target_start=None,
    )  # fmt: skip


def classifier(**changed):
    return glm.GLMClassifier(**{**settings_of_classifier(), **changed})


def fit_new(**parameters):
    given = classifier(**parameters)
    if not (isinstance(given.device, str) and given.device == "runtime"):
        _ = given.settings  # as `fit` does; it would go on to compile
        return None
    return given.fit(X, Y)


def check_fitted(fitted, arguments):
    if fitted is not None:
        finite(fitted.weights_, fitted.feedback_, fitted.bias_, fitted.history_)
        assert set(fitted.classes_.tolist()) >= {0, 1} or "y" in arguments


_FITTED = {}


def fitted(rule="first-to-spike"):
    """A classifier that was trained once."""
    if rule not in _FITTED:
        prefs.codegen.target = "numpy"
        _FITTED[rule] = classifier(decoding=rule, n_epochs=2).fit(X, Y)
    return _FITTED[rule]


def check_labels(labels, arguments):
    assert set(np.asarray(labels).tolist()) <= {0, 1}


def check_score(score, arguments):
    assert 0 <= score <= 1


def check_measures(measured, arguments):
    finite(list(measured.values()))
    assert 0 <= measured["accuracy"] <= 1 and measured["mean_decision_step"] >= 1


def check_basis(basis, arguments):
    finite(basis.matrix)
    assert basis.matrix.shape == (basis.window, basis.n_basis) and basis.matrix.any()


def run(*objects):
    Network(*objects).run(3 * ms, namespace={})


def check_neurons(neurons, arguments):
    run(neurons)
    finite(neurons.u[:], neurons.bias[:])


def neurons(**changed):
    return glm.GLMNeurons(
        **{**dict(n=2, kernels=BASIS, feedback_basis=BASIS, random_state=1, dt=1 * ms), **changed}
    )


def source():
    return SpikeGeneratorGroup(3, [0, 1], [0, 1] * ms, dt=1 * ms)


def population(**changed):
    right = dict(
        bias=np.array([-1.0, -2.0]), kernels={"stimulus": BASIS}, weights={"stimulus": np.ones((3, 2, 2))},
        feedback_basis=BASIS, feedback_weights=-np.ones((2, 2)), activation="sigmoid",
    )  # fmt: skip
    return glm.GLMPopulation(**{**right, **changed})


def check_population(fit, arguments):
    finite(fit.bias, fit.feedback_weights if fit.feedback_basis is not None else 0)
    for weights in fit.weights.values():
        finite(weights)


def set_feedback(value):
    group = neurons()
    group.feedback_weights = value
    finite(group.feedback_weights)
    check_neurons(group, {})


def set_weights(value):
    synapses = glm.GLMSynapses(source(), neurons())
    synapses.w = value
    finite(synapses.w)


def set_intensity(value):
    encoder = glm.RateEncoder(np.zeros(4), dt=1 * ms)
    encoder.intensity = value
    run(encoder)


def check_encoder(encoder, arguments):
    run(encoder)
    levels = np.asarray(encoder.level[:])
    assert np.all((levels >= 0) & (levels <= 32768))


def trained(**arguments):
    group = neurons()
    synapses = glm.GLMSynapses(source(), group)
    arguments.setdefault("neurons", group)
    arguments.setdefault("synapses", synapses)
    trainer = glm.Trainer(**arguments)
    Network(synapses.source, group, synapses, trainer).run(trainer.duration, namespace={})
    return trainer


def check_trained(trainer, arguments):
    finite(trainer.log_likelihoods, trainer.synapses[0].w if trainer.synapses else 0)


def recording():
    return Recording([np.array([0.001, 0.004]), np.array([0.002])], 0.0, 0.01)


def neo_trains():
    neo = pytest.importorskip("neo")
    return [
        neo.SpikeTrain([1.0, 4.0], units="ms", t_stop=10.0),
        neo.SpikeTrain([], units="s", t_stop=0.01),
    ]


CALLS = [
    Call("GLMClassifier", fit_new, settings_of_classifier, check_fitted, costs=150,
         counts=("n_steps", "n_epochs", "n_basis", "window", "batch_size", "target_period", "target_start"),
         also={"device": ("gpu",), "n_steps": ("n_presentations",)}),
    Call("fit", lambda **given: classifier().fit(**given),
         lambda: dict(X=X, y=Y, sample_weight=np.ones(6)), check_fitted, costs=150),
    Call("partial_fit", lambda **given: classifier().partial_fit(**given),
         lambda: dict(X=X, y=Y, classes=[0, 1], sample_weight=np.ones(6)), check_fitted, costs=150),
    Call("fit of trains", lambda **given: classifier(decoding="rate").fit(**given),
         lambda: dict(X=np.repeat(X[:, np.newaxis] > 0.4, 3, axis=1).astype(float), y=Y),
         check_fitted, costs=150),
    Call("fit of scaled inputs", lambda **given: classifier(scale_inputs=True).fit(**given),
         lambda: dict(X=X * 7 - 3, y=np.array(["a", "b"] * 3)), check_fitted, costs=150),
    Call("predict", lambda **given: fitted().predict(**given), lambda: dict(X=X), check_labels, costs=80),
    Call("score", lambda **given: fitted().score(**given),
         lambda: dict(X=X, y=Y, sample_weight=np.ones(6)), check_score, costs=80),
    Call("evaluate", lambda **given: fitted("rate").evaluate(**given), lambda: dict(X=X, y=Y),
         check_measures, costs=80),
    Call("record", lambda **given: fitted().record(**given), lambda: dict(X=X), costs=80,
         check=lambda traces, arguments: [finite(trace.potentials) for trace in traces]),
    Call("fit_ensemble", glm.fit_ensemble,
         lambda: dict(classifiers=[classifier(), classifier(learning_rate=0.2)], X=X, y=Y,
                      sample_weight=np.ones((2, 6)), n_jobs=None),
         check=lambda members, arguments: [check_fitted(member, arguments) for member in members],
         costs=150),
    Call("save", lambda path: fitted().save(path), lambda: dict(path="model.npz")),
    Call("load", glm.GLMClassifier.load, lambda: dict(path="model.npz"), check_fitted),
    Call("GLMPopulation.save", lambda path: population().save(path), lambda: dict(path="population.npz")),
    Call("GLMPopulation.load", glm.GLMPopulation.load, lambda: dict(path="population.npz"),
         check_population),
    Call("export", lambda **given: classifier(device="cpp_standalone").export(**given),
         lambda: dict(X=X, y=Y, directory="project"), costs=400, varied=("X", "y")),
    Call("export into", lambda directory: classifier(device="cpp_standalone").export(X, [0] * 5, directory),
         lambda: dict(directory="project"), also={"directory": ("y",)}),
    Call("load_idx", glm.datasets.load_idx, lambda: dict(path="model.npz")),
    Call("load_mnist", glm.datasets.load_mnist,
         lambda: dict(classes=(5, 7), n_train=2, n_test=2, data_dir=None), costs=100,
         also={"data_dir": ("GLMBRIAN_DATA", "MNIST")}),
    Call("get_activation", glm.get_activation, lambda: dict(activation="probit")),
    Call("RaisedCosineBasis", glm.RaisedCosineBasis,
         lambda: dict(n_basis=2, window=3, a=4.0, c=0.1, dt=1e-3), check_basis,
         counts=("n_basis", "window")),
    Call("RaisedCosineBasis by its peaks", glm.RaisedCosineBasis,
         lambda: dict(n_basis=2, window=9, last_peak=5.0, first_peak=2.0, c=4.0, normalise="area"),
         check_basis, counts=("n_basis", "window"), also={"window": ("n_basis", "last_peak", "first_peak")}),
    Call("ExponentialBasis of times", glm.ExponentialBasis,
         lambda: dict(tau=np.array([2.0, 3.0]) * ms, window=4 * ms, tau_rise=1 * ms, dt=1 * ms,
                      normalise="energy"), check_basis,
         also={"dt": ("tau", "window", "tau_rise")}),
    Call("ExponentialBasis", glm.ExponentialBasis,
         lambda: dict(tau=np.array([2.0, 3.0]), window=4, tau_rise=1.0), check_basis, counts=("window",)),
    Call("IndicatorBasis", glm.IndicatorBasis, lambda: dict(window=3), check_basis, counts=("window",)),
    Call("CustomBasis", glm.CustomBasis, lambda: dict(matrix=BASIS.matrix), check_basis),
    Call("Basis.kernels", BASIS.kernels, lambda: dict(weights=np.ones((3, 2))),
         check=lambda kernels, arguments: finite(kernels)),
    Call("GLMNeurons", neurons,
         lambda: dict(n=2, kernels=BASIS, feedback_basis=BASIS, activation="sigmoid", random_state=1,
                      drive=None, namespace={}, dt=1 * ms, clock=None, order=0, name="neurons"),
         check_neurons, costs=60, counts=("n",),
         also={"dt": ("clock",), "clock": ("dt",), "drive": ("dt",)}),
    Call("GLMNeurons.feedback_weights", set_feedback, lambda: dict(value=np.ones((2, 2))), costs=150,
         also={"value": ("feedback_weights",)}),
    Call("GLMSynapses", lambda **given: glm.GLMSynapses(source(), neurons(), **given),
         lambda: dict(kernel="stimulus", connect=True, delay=1 * ms, name="synapses"),
         check=lambda synapses, arguments: finite(synapses.w), costs=60),
    Call("GLMSynapses of", glm.GLMSynapses, lambda: dict(source=source(), target=neurons()),
         check=lambda synapses, arguments: finite(synapses.w), costs=60),
    Call("GLMSynapses.w", set_weights, lambda: dict(value=np.ones((3, 2, 2))), costs=60,
         also={"value": ("w",)}),
    Call("RateEncoder", glm.RateEncoder,
         lambda: dict(intensities=X, n_steps=2, random_state=1, dt=1 * ms, clock=None, order=0,
                      name="encoder"),
         check_encoder, costs=30, also={"dt": ("clock",), "clock": ("dt",)}),
    Call("RateEncoder.intensity", set_intensity, lambda: dict(value=np.ones(4)), costs=30,
         also={"value": ("intensity",)}),
    Call("FirstSpikeStop", glm.FirstSpikeStop, lambda: dict(neurons=neurons(), name="stop"), costs=20),
    Call("Trainer", trained,
         lambda: dict(n_steps=3, labels=np.array([0, 1]), rule="first-to-spike",
                      learning_rate=0.1, batch_size=1, target_period=2, target_start=1, learn_feedback=True,
                      learn_bias=True, name="trainer"),
         check_trained, costs=150, counts=("n_steps",)),
    Call("Trainer and its updates", trained,
         lambda: dict(n_steps=3, labels=[0, 1], optimizer="adam", learning_rate_schedule="linear",
                      average=0.5, weight_decay=0.1, clip_norm=1.0), check_trained, costs=30,
         varied=("optimizer", "learning_rate_schedule", "average", "weight_decay", "clip_norm")),
    Call("Trainer of targets", trained,
         lambda: dict(n_steps=3, targets=np.zeros((2, 3, 2)), rule="rate"),
         check_trained, costs=150, counts=("n_steps",), also={"rule": ("targets", "labels")}),
    Call("Trainer of tests", trained,
         lambda: dict(n_steps=3, labels=[0, 1], is_training=np.array([True, False])), costs=30,
         varied=("is_training",)),
    Call("Trainer by reward", trained,
         lambda: dict(n_steps=3, credit="three-factor", is_training=np.ones(2, bool),
                      reward=lambda presentation: 1.0),
         costs=30, varied=("reward",)),
    Call("Trainer of", trained,
         lambda: dict(neurons=None, synapses=None, n_steps=3, labels=[0, 1]), costs=30,
         varied=("neurons", "synapses")),
    Call("GLMPopulation", population,
         lambda: dict(bias=np.array([-1.0, -2.0]), kernels={"stimulus": BASIS},
                      weights={"stimulus": np.ones((3, 2, 2))}, feedback_basis=BASIS,
                      feedback_weights=-np.ones((2, 2)), activation="sigmoid"), check_population),
    Call("GLMPopulation.from_kernels", glm.GLMPopulation.from_kernels,
         lambda: dict(bias=np.array([-1.0, -2.0]), kernels=np.ones((3, 2, 4)),
                      feedback=np.ones((2, 3)), activation="cloglog"), check_population),
    Call("GLMPopulation.membrane_potential", lambda **given: population().membrane_potential(**given),
         lambda: dict(inputs=DRIVE, outputs=TRAINS), check=lambda u, arguments: finite(u)),
    Call("GLMPopulation.firing_probability", lambda **given: population().firing_probability(**given),
         lambda: dict(inputs=DRIVE, outputs=TRAINS), check=lambda u, arguments: finite(u)),
    Call("GLMPopulation.log_likelihood", lambda **given: population().log_likelihood(**given),
         lambda: dict(outputs=TRAINS, inputs=DRIVE, mask=np.ones(12, dtype=bool)),
         check=lambda value, arguments: finite(value)),
    Call("GLMPopulation.kernel", lambda name: population().kernel(name), lambda: dict(name="stimulus")),
    Call("GLMPopulation.drive", lambda **given: population().drive(**given),
         lambda: dict(stimulus=DRIVE, kernel="stimulus"), check=lambda u, arguments: finite(u)),
    Call("GLMPopulation.synapses", lambda **given: population().synapses(source(), neurons(), **given),
         lambda: dict(kernel="stimulus", connect=True),
         check=lambda synapses, arguments: finite(synapses.w), costs=60),
    Call("fit_population", glm.fit_population,
         lambda: dict(outputs=TRAINS, inputs=DRIVE, kernels=BASIS, feedback_basis=BASIS, activation="sigmoid",
                      penalty=0.1, mask=np.ones(12, dtype=bool), connect=None, tol=1e-6, max_iter=20),
         check_population, costs=20, counts=("max_iter",)),
    Call("fit_population with a penalty", glm.fit_population,
         lambda: dict(outputs=TRAINS, inputs=DRIVE, kernels=BASIS, penalty="group", strength=0.5,
                      groups={"stimulus": np.array([0, 1, 1])}, penalise_feedback=False,
                      epochs=[(0, 5), (6, 12)], verbose=False),
         check_population, costs=20),
    Call("select_strength", glm.select_strength,
         lambda: dict(outputs=TRAINS, inputs=DRIVE, kernels=BASIS, penalty="lasso",
                      strengths=np.array([1.0, 3.0]), n_folds=2, tol=1e-3, max_iter=20),
         lambda found, arguments: finite(found.scores), costs=40, counts=("max_iter",)),
    Call("learning.membrane_potential", glm.learning.membrane_potential,
         lambda: dict(spikes=DRIVE, basis=BASIS.matrix, weights=np.ones((3, 2, 2)), bias=np.ones(2),
                      outputs=TRAINS, feedback_basis=BASIS.matrix, feedback_weights=np.ones((2, 2))),
         check=finite_unless_huge),
    Call("learning.first_to_spike_log_likelihood", glm.learning.first_to_spike_log_likelihood,
         lambda: dict(spikes=DRIVE, label=1, basis=BASIS.matrix, weights=np.ones((3, 2, 2)),
                      bias=np.ones(2), activation="sigmoid"),
         check=finite_unless_huge),
    Call("learning.rate_log_likelihood", glm.learning.rate_log_likelihood,
         lambda: dict(spikes=DRIVE, targets=TRAINS, basis=BASIS.matrix, feedback_basis=BASIS.matrix,
                      weights=np.ones((3, 2, 2)), feedback_weights=np.ones((2, 2)), bias=np.ones(2),
                      activation="probit"),
         check=finite_unless_huge),
    Call("learning.desired_train", glm.learning.desired_train, lambda: dict(n_steps=8, period=4, start=2),
         counts=("n_steps",)),
    Call("Recording", Recording,
         lambda: dict(times=[np.array([0.001, 0.004]), np.array([0.002])], t_start=0.0, t_stop=0.01,
                      names=["a", "b"]), check=lambda made, arguments: repr(made)),
    Call("Recording.from_trains", Recording.from_trains,
         lambda: dict(trains=TRAINS, dt=1 * ms, t_start=0 * second, names=["a", "b"]),
         check=lambda made, arguments: repr(made)),
    Call("Recording.part", lambda **given: recording().part(**given),
         lambda: dict(t_start=0.0, t_stop=0.005), check=lambda made, arguments: repr(made)),
    Call("Recording.trains", lambda **given: recording().trains(**given),
         lambda: dict(dt=1e-3, collisions="error"), check=lambda made, arguments: finite(made)),
    Call("Recording.source", lambda **given: recording().source(**given),
         lambda: dict(dt=1e-3, collisions="error"), costs=30,
         check=lambda group, arguments: run(group)),
    Call("from_tonic", from_tonic,
         lambda: dict(dataset=[(np.array([(1, 0, 10, 1), (2, 1, 2000, 0)],
                                         dtype=[("x", int), ("y", int), ("t", int), ("p", int)]), 0)],
                      n_steps=3, dt=1 * ms, sensor_size=(4, 4, 2), pool=1, t_start=None),
         check=lambda made, arguments: finite(made[0]), counts=("n_steps",)),
    Call("from_neo", from_neo, lambda: dict(spikes=neo_trains(), t_start=0.001, t_stop=0.009),
         check=lambda made, arguments: repr(made)),
]  # fmt: skip


# ------------------------------------------------------------------ the property


@pytest.fixture(autouse=True)
def little_memory_and_a_folder(tmp_path_factory):
    """Limit the memory, and work in a folder for files with odd names."""
    folder, before = tmp_path_factory.mktemp("calls"), os.getcwd()
    os.chdir(folder)
    with memory_limit(4 * 2**30), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted().save("model.npz")
        population().save("population.npz")
        yield
    os.chdir(before)


@contextlib.contextmanager
def memory_limit(more):
    resource = pytest.importorskip("resource")
    try:
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # only Linux says
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_right_value_or_an_error_that_names_the_argument(call):
    examples = max(2, round(EXAMPLES * min(1.0, 60 / call.costs)))

    @settings(max_examples=examples, derandomize=True, deadline=None, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(data=st.data())
    def calls(data):
        check_call(call, data)

    calls()


def check_call(call, data):
    right = call.right()
    arguments = dict(right)
    names = list(call.varied or arguments)
    changed = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    for name in changed:
        arguments[name] = data.draw(odd_values(arguments[name], name in call.counts), label=name)
    began = time.process_time()  # without other programs
    try:
        call.check(call.function(**arguments), arguments)
    except (*ALLOWED, BrianObjectException) as raised:
        error = raised
        if isinstance(raised, BrianObjectException):
            # Names in expressions are looked up when the network runs, and Brian wraps the
            # error about a missing one.
            error = raised.__cause__
            assert isinstance(error, (KeyError, *ALLOWED)), repr(error)
        words = set(changed).union(*(call.also.get(name, ()) for name in changed))
        if any(not isinstance(right[name], (str, float, int, Quantity)) for name in changed):
            words |= set(arguments)  # if two arrays do not fit together, either may be named
        assert any(re.search(rf"\b{re.escape(word)}\b", str(error)) for word in words), (
            f"{type(error).__name__} names none of {sorted(words)}: {error}"
        )
    assert time.process_time() - began < 10
