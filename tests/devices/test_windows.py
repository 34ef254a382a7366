"""Kernels of any kind and length, in networks of any shape, learn what the equations say on every device.

Filters have three forms, which depend on the window: up to 40 lags and beyond, and whether a
presentation is over before the window is (`glmbrian.brian.filters`).
"""

import subprocess
from itertools import product

import numpy as np
import pytest
from brian2 import prefs
from by_hand import learn_by_hand, make_start

import glmbrian as glm
from glmbrian.brian.filters import LONGEST_SHIFT_REGISTER
from glmbrian.core.objectives import get_objective
from glmbrian.devices import get_device
from glmbrian.devices.genn_environment import GeNNNotFound, check_environment
from glmbrian.devices.problem import HiddenLayers, Inputs, Network, Testing, Training
from glmbrian.support.progress import Silent

KINDS = {
    "raised cosines": lambda window: glm.RaisedCosineBasis(
        2, window, a=4.5 / np.log1p(0.3 * window), dt=0.3
    ),
    "exponentials": lambda window: glm.ExponentialBasis([2.0, 15.0], window),
    "indicators": glm.IndicatorBasis,
    "custom": lambda window: glm.CustomBasis(
        np.random.default_rng(window).normal(size=(window, 2)) / np.sqrt(window)
    ),
}
SHORT, LONG = 7, LONGEST_SHIFT_REGISTER + 3
#: Of kind, window, hidden layer, decoding, and whether the window is longer than a presentation.
CASES = list(product(KINDS, (SHORT, LONG), (False, True), ("first-to-spike", "rate"), (False, True)))
#: Those that have all pairs of values.
USUAL = [
    CASES[16 * kind + int(f"{c}{a ^ c}{b ^ c}{a ^ b ^ c}", 2)]
    for kind, (a, b) in enumerate(product((0, 1), repeat=2))
    for c in (0, 1)
]
#: GeNN takes long to compile.
ON_GENN = [
    ("custom", LONG, False, "rate", False),
    ("exponentials", LONG, True, "rate", False),
]
N, N_INPUTS = 6, 5
INPUTS = Inputs("bytes", np.random.default_rng(1).integers(0, 60, (N, N_INPUTS)).astype(np.uint8))
LABELS = np.arange(N) % 2
TRAINING = Training(np.array([0.3]), 2, 1, input_key=4, order_key=5, output_key=6)


def make_network(kind, window, is_hidden, decoding, is_longer):
    make = KINDS[kind]
    other = KINDS["custom" if kind != "custom" else "exponentials"]
    rate = decoding == "rate"
    hidden = HiddenLayers((3,), make(window), other(window + 1)) if is_hidden else HiddenLayers()
    return Network(
        N_INPUTS,
        2,
        n_steps=window // 2 if is_longer else window + 5,
        basis=make(window),
        # one short beside one long
        feedback_basis=other(LONG + SHORT - window) if rate else None,
        activation=glm.get_activation("sigmoid"),
        objective=get_objective(decoding, 3),
        hidden=hidden,
        gpu=False,
    )


def check_learned(network, start, learned, history):
    expected, log_likelihoods = learn_by_hand(network, start, INPUTS, LABELS, TRAINING)
    assert np.abs(expected.weights - start.weights).max() > 1e-3
    for array, values in zip(learned.arrays_of_all, expected.arrays_of_all):
        np.testing.assert_allclose(array, values, rtol=0, atol=1e-9)
    np.testing.assert_allclose(history[:, 0], log_likelihoods, rtol=0, atol=1e-9)


def check(network, device, trains=True):
    start = make_start(network)
    if trains:
        trained = device.train(network, start, INPUTS, LABELS, TRAINING, Silent())
        check_learned(network, start, trained.parameters, trained.history)
    testing = Testing(input_key=7, output_key=8)
    prefs.codegen.target = "numpy"
    outcomes = [
        place.test(network, start, INPUTS, testing, Silent())[0]
        for place in (device, get_device("runtime"))
    ]
    for name, values in vars(outcomes[0]).items():
        np.testing.assert_allclose(values, vars(outcomes[1])[name], rtol=0, atol=1e-9, err_msg=name)


def cases(*marks, usual=USUAL):
    """Return all cases, of which only the `usual` ones are in every run."""
    rest = [pytest.mark.exhaustive]
    return [
        pytest.param(case, marks=[*marks, *(rest if case not in usual else [])], id="-".join(map(str, case)))
        for case in CASES
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_last_lag_is_silent(kind):
    """Devices leave silent lags at the end out."""
    for window in (SHORT, SHORT + 1, LONG, LONG + 1):
        assert KINDS[kind](window).matrix[-1].any()


def test_usual_cases_have_all_pairs_of_values():
    for one, other in product(range(5), repeat=2):
        pairs = [{(case[one], case[other]) for case in some} for some in (CASES, USUAL)]
        assert pairs[0] == pairs[1]


@pytest.mark.parametrize("case", cases())
def test_in_numpy(case):
    check(make_network(*case), get_device("runtime"))


@pytest.mark.parametrize("case", cases(pytest.mark.compiled))
def test_in_compiled_programs(case):
    check(make_network(*case), get_device("cpp_standalone"))


@pytest.mark.compiled
@pytest.mark.exhaustive
@pytest.mark.parametrize("case", USUAL, ids=str)
def test_in_cython(case):
    network, start = make_network(*case), make_start(make_network(*case))
    prefs.codegen.target = "cython"
    trained = get_device("runtime").train(network, start, INPUTS, LABELS, TRAINING, Silent())
    check_learned(network, start, trained.parameters, trained.history)


@pytest.mark.compiled
@pytest.mark.exhaustive
@pytest.mark.parametrize("case", USUAL, ids=str)
def test_as_a_project_in_an_empty_environment(case, tmp_path):
    network, start = make_network(*case), make_start(make_network(*case))
    device = get_device("cpp_standalone")
    written = tmp_path / "written"
    written.mkdir()
    device.export(network, start, INPUTS, LABELS, TRAINING, written)
    folder = written.rename(tmp_path / "moved")
    programs = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    subprocess.run(["make", "run"], cwd=folder, check=True, capture_output=True, env=programs)
    learned, history, _, _ = device.read_exported(network, folder, has_checksums=True)
    check_learned(network, start, learned, history)


@pytest.mark.compiled
@pytest.mark.long
@pytest.mark.parametrize("case", cases(usual=ON_GENN))
def test_on_genn(case):
    """Hidden layers are only tested there."""
    try:
        check_environment(gpu=False)
    except GeNNNotFound as error:
        pytest.skip(f"GeNN programs are not run: {error}")
    network = make_network(*case)
    check(network, get_device("genn"), trains=not network.hidden.sizes)
