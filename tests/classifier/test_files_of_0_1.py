"""Models, exports, populations and results that version 0.1 wrote, and what it learned.

`fixtures/v0_1/write.py` says how they were made.
"""

import importlib.util
import json
import platform
import shutil
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from brian2 import prefs
from conftest import EXHAUSTIVE

import glmbrian as glm
from glmbrian.reproduce import local_workers
from glmbrian.reproduce.pipeline import reproduce

FOLDER = Path(__file__).parents[1] / "fixtures" / "v0_1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())


def _writer():
    spec = importlib.util.spec_from_file_location("write_v0_1", FOLDER / "write.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


writer = _writer()
writer.LATER["average"] = 0.0
TRAINED = np.load(FOLDER / "trained.npz")
#: Whether this machine's mathematics has the bits of the one where the weights were trained.
SAME_BITS = np.array_equal(writer.mathematics(), TRAINED["mathematics"])


def seen_by(name):
    """Return what the model of that name was trained on."""
    settings = writer.MODELS.get(name, {})
    X, labels, trains = writer.data()
    if settings.get("trains"):
        X = trains
    if settings.get("scale_inputs"):
        X = X / 16 - 3.0
    if settings.get("names"):
        pandas = pytest.importorskip("pandas")
        X = pandas.DataFrame(X, columns=[f"pixel {i}" for i in range(20)])
    return X, labels[settings.get("y", "numbers")]


def assert_gives(classifier, X, y, expected):
    given = writer.what_it_gives(classifier, X, y)
    for name in ("predictions", "steps", "n_presentations", "classes", "keys", "evaluated"):
        assert given[name] == expected[name], name
    np.testing.assert_allclose(given["sums"], expected["sums"], rtol=1e-12)
    np.testing.assert_allclose(given["history"], expected["history"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", writer.MODELS)
def test_models(name, tmp_path):
    X, y = seen_by(name)
    classifier = glm.GLMClassifier.load(FOLDER / f"{name}.npz")
    assert_gives(classifier, X, y, EXPECTED[name])
    # Saving a model again writes today's format.
    classifier.save(tmp_path / "again.npz")
    assert_gives(glm.GLMClassifier.load(tmp_path / "again.npz"), X, y, EXPECTED[name])


@pytest.mark.parametrize("name", ["first_to_spike", "rate", "own_basis"])
def test_models_train_on(name):
    X, y = seen_by(name)
    loaded = glm.GLMClassifier.load(FOLDER / f"{name}.npz").partial_fit(X, y)
    fitted = writer.fitted(name)[0].partial_fit(X, y)
    np.testing.assert_allclose(loaded.weights_, fitted.weights_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(loaded.history_, fitted.history_, rtol=0, atol=1e-9)


@pytest.mark.parametrize("device", ["cpp_standalone", "genn"])
def test_exports(device):
    X, y = seen_by("rate")
    classifier = glm.GLMClassifier.load(FOLDER / f"export_{device}")
    assert classifier.device == device
    classifier.device = "runtime"
    assert_gives(classifier, X, y, EXPECTED[f"export_{device}"])


@pytest.mark.parametrize("name", writer.populations())
def test_populations(name):
    population = glm.GLMPopulation.load(FOLDER / f"{name}.npz")
    inputs, outputs = writer.population_inputs(population)
    u = population.membrane_potential(inputs, outputs)
    np.testing.assert_allclose(u, EXPECTED[name], rtol=1e-12)


def test_results_are_used_again(tmp_path, monkeypatch):
    monkeypatch.setattr("glmbrian.reproduce.pipeline.__version__", "0.2.0")
    output = tmp_path / "results"
    shutil.copytree(FOLDER / "results", output)
    # With the same versions of other packages, that of glmbrian itself does not matter.
    about = json.loads((output / "settings.json").read_text())
    about["versions"].update(
        {name: version(name) for name in ("brian2", "numpy", "scipy", "scikit-learn")}
    )
    about["versions"].update(python=platform.python_version(), glmbrian="0.1.0")
    (output / "settings.json").write_text(json.dumps(about))
    before = {path.name: path.read_bytes() for path in (output / "fits").iterdir()}
    done = reproduce(
        ["accuracy-vs-k"], writer.tiny_protocol(), output, local_workers(1), "runtime", False,
        lambda line: None,
    )  # fmt: skip
    assert done["fits"] == 0
    assert {path.name: path.read_bytes() for path in (output / "fits").iterdir()} == before
    rows = (output / "accuracy_vs_k.csv").read_text()
    assert rows == (FOLDER / "results" / "accuracy_vs_k.csv").read_text()


# ------------------------------------------------------------------ the same training

TRAININGS = list(writer.trainings())
#: Each takes a compilation of its own.
COMPILED = TRAININGS if EXHAUSTIVE else [("rate", "sigmoid", "ensemble")]


def assert_trained(arguments, device):
    got, expected = writer.trained(*arguments, device), TRAINED[" ".join([*arguments, device])]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)
    # In Python a batch's gradients are summed before the rate is applied, as programs always did.
    if SAME_BITS and not (device == "runtime" and "batch" in arguments):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("arguments", TRAININGS, ids=" ".join)
def test_training_in_python(arguments):
    assert_trained(arguments, "runtime")


@pytest.mark.compiled
@pytest.mark.parametrize("arguments", COMPILED, ids=" ".join)
def test_training_in_compiled_programs(arguments):
    prefs.codegen.cpp.extra_compile_args = ["-w", "-O0"]
    assert_trained(arguments, "cpp_standalone")
