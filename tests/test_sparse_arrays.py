"""Array arguments refuse sparse arrays in the same words, but for spike trains, whose steps are read."""

import numpy as np
import pytest
import scipy.sparse
from brian2 import ms

import glmbrian as glm

TRAINS = (np.random.default_rng(0).random((200, 3)) < 0.2) * 1.0
FEEDBACK = glm.IndicatorBasis(2)


def sparse(array):
    return scipy.sparse.csr_matrix(array)  # csr_array begins with SciPy 1.8


def coupled():
    source, neurons = (glm.GLMNeurons(3, glm.IndicatorBasis(1)) for _ in range(2))
    return source, neurons, glm.GLMSynapses(source, neurons)


def connect(pairs):
    source, neurons, _ = coupled()
    return glm.GLMSynapses(source, neurons, connect=pairs)


def set_weights(weights):
    coupled()[2].w = weights


def classifier(**settings):
    return glm.GLMClassifier(device="runtime", n_epochs=1, verbose=False, **settings)


TAKING_ARRAYS = {
    "X": lambda array: classifier().fit(array, np.arange(200) % 2),
    "X of scaled inputs": lambda array: classifier(scale_inputs=True).fit(array, np.arange(200) % 2),
    "y": lambda array: classifier().fit(TRAINS, array),
    "sample_weight": lambda array: classifier().fit(TRAINS, np.arange(200) % 2, sample_weight=array),
    "intensities": lambda array: glm.RateEncoder(array, n_steps=1),
    "w": set_weights,
    "connect": connect,
    "labels": lambda array: glm.Trainer(*coupled()[1:], n_steps=2, labels=array),
    "targets": lambda array: glm.Trainer(*coupled()[1:], n_steps=2, targets=array, rule="rate"),
    "matrix": glm.CustomBasis,
}


@pytest.mark.parametrize("argument", TAKING_ARRAYS)
def test_sparse_arrays_are_refused_by_name(argument):
    name = argument.split()[0]
    words = rf"^{name}\S* must be a dense array, not a sparse one; use .*{name}\S*\.toarray\(\)"
    with pytest.raises(TypeError, match=words):
        TAKING_ARRAYS[argument](sparse(TRAINS))


READING_TRAINS = {
    "outputs": lambda trains: glm.fit_population(trains, feedback_basis=FEEDBACK).bias,
    "inputs": lambda trains: glm.fit_population(TRAINS, trains, FEEDBACK).bias,
    "outputs of score": lambda trains: glm.fit_population(TRAINS, feedback_basis=FEEDBACK).score(
        trains
    ),
    "trains": lambda trains: glm.interop.Recording.from_trains(trains, 1 * ms).trains(),
}


@pytest.mark.parametrize("argument", READING_TRAINS)
def test_sparse_trains_are_read(argument):
    read = READING_TRAINS[argument]
    np.testing.assert_allclose(read(sparse(TRAINS)), read(TRAINS), rtol=1e-12)


def test_the_pairs_of_a_sparse_array_are_those_of_its_entries():
    pairs = sparse(np.eye(3)[[1, 2, 0]]).toarray().nonzero()  # what the error says
    synapses = connect(pairs)
    synapses.w = 1
    np.testing.assert_array_equal(synapses.w[:, :, 0], np.eye(3)[[1, 2, 0]])


class Coordinates:
    """Like `sparse.COO` and JAX's arrays, whose method has another name."""

    def todense(self):
        return np.eye(2)

    def __array__(self, *_):
        raise RuntimeError("Cannot convert a sparse array to dense automatically")


def test_sparse_arrays_of_other_packages():
    with pytest.raises(TypeError, match=r"use w\.todense\(\)"):
        set_weights(Coordinates())


@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
def test_all_forms_of_scipy(form):
    with pytest.raises(TypeError, match="w must be a dense array, not a sparse one"):
        set_weights(sparse(TRAINS).asformat(form))


def test_an_array_of_sparse_rows():
    with pytest.raises(TypeError, match="X must be a dense array, not a sparse one"):
        classifier().fit(list(map(sparse, TRAINS)), np.arange(200) % 2)
