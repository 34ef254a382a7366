"""`GLMClassifier(adversarial=...)`: arguments, files, ensembles, and what it is for."""

import re
import subprocess

import numpy as np
import pytest
from sklearn.base import clone

import glmbrian as glm
from glmbrian.robustness import attack

DIGITS = glm.datasets.load_mnist((5, 7), 20, 20)
X, Y = DIGITS.X_train, DIGITS.y_train
LEARNED = ("weights_", "feedback_", "bias_", "history_")


def make(**parameters):
    settings = dict(n_steps=4, n_basis=2, n_epochs=2, learning_rate=0.05, random_state=3, verbose=False)
    settings |= dict(device="runtime", adversarial={"budget": 5, "fraction": 0.5})
    return glm.GLMClassifier(**{**settings, **parameters})


def assert_same(one, other, atol=0.0):
    for name in LEARNED:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=atol)


class NotComparable:
    """Like pandas.NA."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        raise TypeError("boolean value of NA is ambiguous")


@pytest.mark.parametrize(
    "adversarial, error, said",
    [
        (5, TypeError, "adversarial must be None or a mapping such as"),
        ({}, ValueError, "adversarial must hold 'budget'"),
        ({"kind": "add"}, ValueError, "adversarial must hold 'budget'"),
        ({"budget": 5, "epsilon": 1}, ValueError, "nothing but 'budget', .*, got 'epsilon'"),
        ({NotComparable(): 5}, ValueError, "nothing but 'budget', .*, got <.*NotComparable"),
        ({"budget": 0}, ValueError, r"adversarial\['budget'\] must be an integer from 1"),
        ({"budget": 2.0}, TypeError, r"adversarial\['budget'\] must be an integer from 1"),
        ({"budget": True}, TypeError, r"adversarial\['budget'\] must be an integer from 1"),
        (
            {"budget": 5, "kind": "swap"},
            ValueError,
            r"\['kind'\] must be one of 'add', 'remove', 'flip'",
        ),
        ({"budget": 5, "kind": None}, TypeError, r"\['kind'\] must be one of"),
        ({"budget": 5, "fraction": 0}, ValueError, r"\['fraction'\] must be .* above 0 and at most 1"),
        ({"budget": 5, "fraction": 1.5}, ValueError, r"\['fraction'\] must be .* at most 1"),
    ],
)
def test_what_is_refused(adversarial, error, said):
    with pytest.raises(error, match=said):
        make(adversarial=adversarial, device="cpp_standalone").fit(X, Y)


class Reward(glm.Objective):
    name = "reward"
    clamps_outputs = False
    learns_feedback = True

    def gradient(self, potentials, outputs, label, activation):
        raise AssertionError("must not be called")


@pytest.mark.parametrize(
    "parameters, said",
    [
        (dict(decoding=Reward()), "adversarial needs an objective that clamps the outputs"),
        (dict(hidden=(3,), credit="three-factor"), "credit='three-factor' learns from a reward"),
        (dict(device="genn"), "adversarial must be None on device='genn'.*cpp_standalone"),
    ],
)
def test_what_it_cannot_be_combined_with(parameters, said):
    with pytest.raises(ValueError, match=said):
        make(**parameters).fit(X, Y)


def test_calls_of_partial_fit_are_epochs_of_fit():
    one, other = make(), make()
    one.fit(X, Y)
    for _ in range(2):
        other.partial_fit(X, Y, classes=[5, 7])
    assert_same(one, other)
    assert np.abs(one.weights_ - make(adversarial=None).fit(X, Y).weights_).max() > 1e-3


def test_weights_of_zero_leave_nothing_behind():
    """A presentation of weight 0 is attacked, but not learned from."""
    kept = np.arange(len(Y)) % 3 != 0
    one, other = make(batch_size=7).fit(X, Y, kept.astype(float)), make(batch_size=7)
    changed = np.where(kept[:, np.newaxis], X, 0)
    assert_same(one, other.fit(changed, Y, kept.astype(float)))


def test_a_custom_fraction_and_kind_by_default():
    full = make(adversarial={"budget": 5, "kind": "flip", "fraction": 1.0}).fit(X, Y)
    assert_same(full, make(adversarial={"budget": 5}).fit(X, Y))


def test_files(tmp_path):
    path = tmp_path / "model.npz"
    one = make(hidden=(3,)).fit(X, Y)
    one.save(path)
    loaded = glm.GLMClassifier.load(path)
    assert loaded.get_params() == one.get_params()
    assert loaded.adversarial == {"budget": 5, "fraction": 0.5}
    assert_same(loaded.partial_fit(X, Y), one.partial_fit(X, Y))
    assert clone(one).adversarial == one.adversarial
    clone(one.set_params(adversarial={"budget": 5, "kind": glm.robustness.KINDS["add"]})).fit(
        X, Y
    ).save(path)
    assert glm.GLMClassifier.load(path).adversarial == {"budget": 5, "kind": "add"}
    assert "adversarial={'budget': 5, 'fraction': 0.5}" in repr(make())


def test_a_kind_of_your_own_is_not_saved(tmp_path):
    class Later(glm.robustness.Kind):
        name = "later"

        def allowed(self, trains):
            return np.arange(trains.shape[1])[:, np.newaxis] + np.zeros(trains.shape) > 1

    one = make(adversarial={"budget": 2, "kind": Later()}).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"adversarial\['kind'\] must be one of add, remove, flip to be"
    ):
        one.save(tmp_path / "model.npz")


@pytest.mark.parametrize(
    "device",
    [
        "runtime",
        pytest.param("cpp_standalone", marks=[pytest.mark.compiled, pytest.mark.exhaustive]),
    ],
)
def test_each_replica_has_its_own_changes(device):
    one = make(device=device)
    members = [
        clone(one).set_params(learning_rate=rate, start_state=state)
        for rate, state in ((0.05, None), (0.02, 1), (0.05, 2))
    ]
    weights = np.ones((3, len(Y)))
    weights[1, ::3] = 0
    together = glm.fit_ensemble([clone(member) for member in members], X, Y, weights, n_jobs=2)
    for member, replica, weight in zip(members, together, weights):
        assert_same(member.fit(X, Y, weight), replica)


@pytest.mark.compiled
def test_exported_projects(tmp_path):
    one = make(device="cpp_standalone")
    folder = tmp_path / "project"
    one.export(X, Y, folder)
    subprocess.run(["make", "run"], cwd=folder, check=True, capture_output=True)
    exported = glm.GLMClassifier.load(folder)
    assert exported.get_params() == one.get_params()
    assert_same(exported, one.fit(X, Y))
    settings = folder / "job" / "settings.txt"
    text = settings.read_text()

    def run(changed):
        settings.write_text(changed)
        return subprocess.run(["./main"], cwd=folder, capture_output=True, text=True)

    changed = text.replace("budget 5", "budget 3").replace("adds 1", "adds 0").replace("0.5", "0.25")
    assert run(changed).returncode == 0
    exported = glm.GLMClassifier.load(folder)
    assert exported.adversarial == {"budget": 3, "kind": "remove", "fraction": 0.25}
    assert_same(exported, make(device="cpp_standalone", adversarial=exported.adversarial).fit(X, Y))
    assert run(text.replace("budget 5", "budget 0")).returncode == 0
    exported = glm.GLMClassifier.load(folder)
    assert exported.adversarial is None
    assert_same(exported, make(device="cpp_standalone", adversarial=None).fit(X, Y))
    for changed, said in [
        (text.replace("budget 5", "budget -1"), "adversarial_budget must be an integer from 0"),
        (
            text.replace("fraction 0.5", "fraction 1.5"),
            "adversarial_fraction must be above 0 and at most 1",
        ),
        (
            text.replace("adds 1", "adds 0").replace("removes 1", "removes 0"),
            "adds or .*removes must be 1",
        ),
        (text.replace("adds 1", "adds yes"), "adversarial_adds must be 0 or 1"),
    ]:
        done = run(changed)
        assert done.returncode == 3
        assert done.stderr.startswith("glmbrian: job/settings.txt: ")
        assert re.search(said, done.stderr)


@pytest.mark.compiled
def test_attacks_do_less_harm():
    digits = glm.datasets.load_mnist((3, 5, 8), 300, 100)
    settings = dict(device="cpp_standalone", n_steps=4, n_basis=2, n_epochs=20)
    accuracies = []
    for adversarial in (None, {"budget": 10}):
        classifier = make(**settings, adversarial=adversarial).fit(digits.X_train, digits.y_train)
        trains = attack(classifier, digits.X_test, digits.y_test, 10, method="iterated")
        accuracies.append(classifier.score(trains, digits.y_test))
    assert accuracies[1] > accuracies[0] + 0.1
