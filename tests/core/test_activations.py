"""Tests of glmbrian.core.activations: NumPy, C++ and Brian against 40 digits."""

import copy
import dataclasses
import pickle
import shutil
import subprocess
import warnings
from importlib import resources

import mpmath as mp
import numpy as np
import pytest
from brian2 import Network, NeuronGroup, prefs

from glmbrian.brian.functions import namespace_of
from glmbrian.core.activations import (
    CLOGLOG,
    PROBIT,
    SIGMOID,
    Activation,
    get_activation,
    name_to_save,
)

BY_NAME = {"sigmoid": SIGMOID, "probit": PROBIT, "cloglog": CLOGLOG}
CLOSE = dict(rtol=1e-12, atol=1e-300)  # below are the subnormal numbers

every_activation = pytest.mark.parametrize("name", BY_NAME)


def grid(name):
    end = 300 if name == "cloglog" else 1000
    return np.unique(np.concatenate([np.linspace(-e, e, 401) for e in (end, 50, 3, 1e-8)]))


def exact_log_spike(name, u):
    if name == "sigmoid":
        return -mp.log1p(mp.exp(-u))
    if name == "probit":
        upper = mp.erfc(abs(u) / mp.sqrt(2)) / 2
        return mp.log1p(-upper) if u > 0 else mp.log(upper)
    rate = mp.exp(u)
    return mp.log1p(-mp.exp(-rate)) if rate > 1 else mp.log(-mp.expm1(-rate))


def exact_log_spike_slope(name, u):
    if name == "sigmoid":
        return 1 / (1 + mp.exp(u))
    if name == "probit":
        return mp.npdf(u) / mp.exp(exact_log_spike(name, u))
    return mp.exp(u) / mp.expm1(mp.exp(u))


def exact_log_silence(name, u):
    return -mp.exp(u) if name == "cloglog" else exact_log_spike(name, -u)


def exact_log_silence_slope(name, u):
    return -mp.exp(u) if name == "cloglog" else -exact_log_spike_slope(name, -u)


EXACT = {
    "log_spike": exact_log_spike,
    "log_silence": exact_log_silence,
    "log_spike_slope": exact_log_spike_slope,
    "log_silence_slope": exact_log_silence_slope,
}
every_function = pytest.mark.parametrize("function", EXACT)


# NumPy


@every_activation
@every_function
@mp.workdps(40)
def test_values(name, function):
    u = grid(name)
    want = [float(EXACT[function](name, mp.mpf(x))) for x in u]
    np.testing.assert_allclose(getattr(BY_NAME[name], function)(u), want, **CLOSE)


@every_activation
@pytest.mark.parametrize("which", ["log_spike", "log_silence"])
@mp.workdps(60)
def test_reference_slopes_are_the_derivatives(name, which):
    """The slopes above are formulas; this holds them to the logarithms above."""
    for u in map(mp.mpf, [-40, -3.5, -0.1, 0, 0.7, 2, 4]):
        slope = mp.diff(lambda x: EXACT[which](name, x), u)
        assert mp.almosteq(slope, EXACT[f"{which}_slope"](name, u), rel_eps=1e-15)


@every_activation
def test_probability(name):
    u = grid(name)
    activation = BY_NAME[name]
    probability = activation.probability(u)
    assert probability.min() >= 0 and probability.max() <= 1
    few_units = dict(rtol=0, atol=4 * np.finfo(float).eps)
    np.testing.assert_allclose(probability, np.exp(activation.log_spike(u)), **few_units)
    np.testing.assert_allclose(1 - probability, np.exp(activation.log_silence(u)), **few_units)


@every_activation
@mp.workdps(40)
def test_rho_is_the_difference_of_the_slopes(name):
    """rho = g' / (g (1 - g)), eq. first_spk_method_rho."""

    def g(u):
        return mp.exp(exact_log_spike(name, u))

    def rho(u):
        return mp.diff(g, u) / (g(u) * mp.exp(exact_log_silence(name, u)))

    u = np.linspace(-8, 4, 41)
    activation = BY_NAME[name]
    difference = activation.log_spike_slope(u) - activation.log_silence_slope(u)
    np.testing.assert_allclose(difference, [float(rho(mp.mpf(x))) for x in u], rtol=1e-12)


def test_rho_of_the_sigmoid_is_one():
    u = grid("sigmoid")
    rho = SIGMOID.log_spike_slope(u) - SIGMOID.log_silence_slope(u)
    np.testing.assert_allclose(rho, 1, rtol=1e-15)


@every_activation
@every_function
def test_nothing_overflows(name, function):
    with warnings.catch_warnings(), np.errstate(over="raise", invalid="raise", divide="raise"):
        warnings.simplefilter("error")
        assert np.isfinite(getattr(BY_NAME[name], function)(grid(name))).all()


# get_activation


@every_activation
def test_activation_by_name(name):
    assert get_activation(name) is BY_NAME[name]
    assert BY_NAME[name].name == name


def test_an_activation_is_returned_as_it_is():
    mine = Activation("mine", "0.5", *[np.ones_like] * 5)
    assert get_activation(mine) is mine


@pytest.mark.parametrize("bad, error", [("relu", ValueError), (None, TypeError), (np.tanh, TypeError)])
def test_unknown_activation(bad, error):
    with pytest.raises(error, match="^activation must be one of 'sigmoid', 'probit', 'cloglog'"):
        get_activation(bad)


# C++

NATIVE = resources.files("glmbrian") / "native"
PROGRAM = """
#include <cstdio>
#include "gradients.hpp"
%s
int main()
{
    double u;
    while (std::scanf("%%lf", &u) == 1)
%s    return 0;
}
"""
IN_CPP = [*EXACT, "probability", "probability_slope"]
FLAGS = {
    "plain": ["-O2", "-std=c++11"],
    "brian": ["-O3", "-ffast-math", "-fno-finite-math-only", "-march=native", "-std=c++11"],
}


@pytest.fixture(scope="module", params=FLAGS)
def cpp_values(request, tmp_path_factory):
    """What the C++ texts give on the grids, as {name: {function: array}}."""
    if shutil.which("g++") is None:
        pytest.skip("no g++ to compile the C++ texts with")
    structs = "\n".join(activation.cpp_struct(name) for name, activation in BY_NAME.items())
    folder = tmp_path_factory.mktemp("cpp")
    values = {}
    for name in BY_NAME:
        arguments = ", ".join(f"{name}::{function}(u)" for function in IN_CPP)
        row = f'        std::printf("{" ".join(["%.17g"] * len(IN_CPP))}\\n", {arguments});\n'
        source, program = folder / f"{name}.cpp", folder / name
        source.write_text(PROGRAM % (structs, row))
        options = [*FLAGS[request.param], f"-I{NATIVE}", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(["g++", *options, str(source), "-o", str(program)], check=True)
        numbers = "\n".join(map(repr, grid(name).tolist()))
        printed = subprocess.run(
            [str(program)], input=numbers, capture_output=True, text=True, check=True
        ).stdout
        values[name] = dict(zip(IN_CPP, np.loadtxt(printed.splitlines()).T))
    return values


@pytest.mark.compiled
@every_activation
@pytest.mark.parametrize("function", IN_CPP)
def test_cpp_gives_the_same_values(cpp_values, name, function):
    want = getattr(BY_NAME[name], function)(grid(name))
    np.testing.assert_allclose(cpp_values[name][function], want, **CLOSE)


# Brian


@pytest.mark.parametrize("target", ["numpy", pytest.param("cython", marks=pytest.mark.compiled)])
def test_brian_expression_is_the_probability(target, monkeypatch):
    monkeypatch.setitem(prefs, "codegen.target", target)
    u = np.linspace(-300, 300, 1201)
    group = NeuronGroup(
        len(u),
        "u : 1 (constant)\n" + "\n".join(f"{name} : 1" for name in BY_NAME),
        namespace={key: f for a in BY_NAME.values() for key, f in namespace_of(a).items()},
    )
    group.u = u
    group.run_regularly("\n".join(f"{name} = {a.expression}" for name, a in BY_NAME.items()))
    Network(group).run(group.dt)
    for name, activation in BY_NAME.items():
        got = getattr(group, name)[:]
        np.testing.assert_allclose(got, activation.probability(u), rtol=1e-12, atol=1e-15)
        assert got.min() >= 0 and got.max() <= 1


@pytest.mark.parametrize("name", ["sigmoid", "probit", "cloglog"])
def test_copies_are_the_same(name):
    activation = get_activation(name)
    assert copy.deepcopy(activation) is activation
    assert pickle.loads(pickle.dumps(activation)) is activation


def test_own_activation_that_takes_a_name_is_copied_as_it_is():
    own = dataclasses.replace(get_activation("sigmoid"), expression="0.1")
    assert copy.deepcopy(own).expression == "0.1"


def test_name_to_save():
    assert [name_to_save(name) for name in BY_NAME] == list(BY_NAME)
    assert name_to_save(PROBIT) == "probit"
    own = dataclasses.replace(PROBIT, expression="0.1")
    with pytest.raises(
        ValueError, match=r"activation must be one of sigmoid, .* to be saved, got a custom one"
    ):
        name_to_save(own)


def test_terms_are_those_of_the_functions():
    for name in ("sigmoid", "probit", "cloglog"):
        activation = get_activation(name)
        u = np.concatenate([-np.logspace(-3, 3, 50), [0.0], np.logspace(-3, 2, 50)])[:, np.newaxis]
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            want = (
                activation.log_silence(u),
                activation.log_silence_slope(u),
                activation.log_spike_slope(u),
            )
            got = activation.silence_terms(u)
        for one, other in zip(got, want):
            np.testing.assert_allclose(one, other, rtol=1e-14, atol=1e-300)
