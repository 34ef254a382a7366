"""Replicas trained at once end where separate runs do."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import glmbrian as glm
from glmbrian.devices.problem import Parameters, Training
from glmbrian.devices.replicas import compiled_replicas, repeat_last

DIGITS = glm.datasets.load_mnist((5, 7), 20, 0)
X, Y = DIGITS.X_train, DIGITS.y_train
COMPILED_EXHAUSTIVE = [pytest.mark.compiled, pytest.mark.exhaustive]


@pytest.mark.parametrize(
    "decoding, batch_size, device",
    [
        ("first-to-spike", 7, "runtime"),
        pytest.param("rate", 1, "runtime", marks=pytest.mark.exhaustive),
        pytest.param("first-to-spike", 7, "cpp_standalone", marks=COMPILED_EXHAUSTIVE),
        pytest.param("rate", 1, "cpp_standalone", marks=pytest.mark.compiled),
    ],
)
def test_each_replica_is_its_own_run(device, decoding, batch_size):
    one = glm.GLMClassifier(
        decoding, n_steps=4, n_basis=3, n_epochs=2, batch_size=batch_size, device=device, random_state=5
    )
    members = [
        clone(one).set_params(learning_rate=rate, start_state=state, weight_scale=0.01)
        for rate, state in ((1e-2, None), (5e-2, None), (1e-2, 3), (2e-2, 4))
    ]
    # the last two learn from different folds
    weights = np.ones((4, len(Y)))
    weights[2, ::3] = 0
    weights[3, 1::3] = 0
    # In one process, whose program the test of processes has as well
    together = glm.fit_ensemble([clone(member) for member in members], X, Y, weights, n_jobs=1)
    for member, replica, weight in zip(members, together, weights):
        member.fit(X, Y, sample_weight=weight)
        for name in ("weights_", "feedback_", "bias_", "history_"):
            np.testing.assert_allclose(
                getattr(replica, name), getattr(member, name), rtol=0, atol=1e-9, err_msg=name
            )
        np.testing.assert_array_equal(replica.predict(X), member.predict(X))
    assert np.abs(together[0].weights_ - together[2].weights_).max() > 1e-3


@pytest.mark.compiled
@pytest.mark.parametrize("n_jobs", [2, 7])
def test_processes_share_replicas_out(n_jobs):
    one = glm.GLMClassifier("rate", n_steps=4, n_basis=3, n_epochs=2, random_state=5, verbose=False)
    members = [
        clone(one).set_params(learning_rate=rate, start_state=state)
        for state, rate in enumerate((1e-2, 5e-2, 2e-2, 3e-2, 4e-2))
    ]
    # all from different folds
    weights = np.ones((5, len(Y)))
    weights[np.arange(5), np.arange(5) * 7] = 0
    shared = glm.fit_ensemble([clone(member) for member in members], X, Y, weights, n_jobs=n_jobs)
    for member, weight, replica in zip(members, weights, shared):
        member.fit(X, Y, sample_weight=weight)
        for name in ("weights_", "feedback_", "bias_", "history_"):
            np.testing.assert_allclose(
                getattr(replica, name), getattr(member, name), rtol=0, atol=1e-9, err_msg=name
            )
    assert shared[0].timing_["steps"] == members[0].timing_["steps"]


@given(n_replicas=st.integers(1, 40), n_jobs=st.integers(1, 50))
def test_shares_are_of_one_length_and_cover_all(n_replicas, n_jobs):
    network = glm.GLMClassifier(n_steps=2).settings.architecture.network(3, 2, glm.IndicatorBasis(2))
    training = Training(np.ones(n_replicas), 1, 1, input_key=1, order_key=2)
    shares = replace(network, n_replicas=n_replicas, n_jobs=n_jobs).shares(training)
    assert len(shares) <= n_jobs
    assert {share.stop - share.start for share in shares} == {-(-n_replicas // n_jobs)}
    assert {replica for share in shares for replica in range(n_replicas)[share]} == set(
        range(n_replicas)
    )


def test_ensembles_of_many_sizes_share_programs_unless_training_takes_longer_than_compiling():
    network = glm.GLMClassifier(n_steps=8).settings.architecture.network(
        784, 2, glm.RaisedCosineBasis(8, 8)
    )

    def compiled(n_replicas, n_epochs):
        training = Training(np.ones(n_replicas), n_epochs, 1, input_key=1, order_key=2)
        return compiled_replicas(replace(network, n_replicas=n_replicas), training, 1000)

    assert [compiled(n, 10) for n in range(1, 18)] == [1, 2, 4, 4] + [8] * 4 + [16] * 8 + [32]
    assert [compiled(n, 10_000) for n in range(1, 18)] == list(range(1, 18))


def test_replicas_that_fill_a_program_up_repeat_the_last():
    network = glm.GLMClassifier("rate", n_steps=4).settings.architecture.network(
        5, 2, glm.IndicatorBasis(3)
    )
    network = replace(network, n_replicas=3)
    random = np.random.default_rng(0)
    parameters = Parameters(random.random((5, 6, 3)), random.random((6, 3)), random.random(6))
    training = Training(
        random.random(3), 1, 1, input_key=1, order_key=2, sample_weights=random.random((3, 7))
    )
    more, settings = repeat_last(5, network, parameters, training)
    for array, repeated, axis in zip(parameters.arrays, more.arrays, (1, 0, 0)):
        replicas = np.split(repeated, 5, axis)
        np.testing.assert_array_equal(np.concatenate(replicas[:3], axis), array)
        np.testing.assert_array_equal(replicas[3], replicas[2])
        np.testing.assert_array_equal(replicas[4], replicas[2])
    expected = training.learning_rates[[0, 1, 2, 2, 2]]
    np.testing.assert_array_equal(settings.learning_rates, expected)
    np.testing.assert_array_equal(settings.sample_weights, training.sample_weights[[0, 1, 2, 2, 2]])


@pytest.mark.compiled
def test_a_program_that_fails_in_one_process(monkeypatch):
    from glmbrian.devices import compiled

    write = compiled.write_training
    broken = []

    def write_all_but_the_second(job, *arguments):
        write(job, *arguments)
        if job.parent.name == "1":
            (job / "data.bin").unlink()
            broken.append(job)

    monkeypatch.setattr(compiled, "write_training", write_all_but_the_second)
    one = glm.GLMClassifier("rate", n_steps=4, n_basis=3, n_epochs=2, random_state=5, verbose=False)
    with pytest.raises(RuntimeError, match="the compiled simulation ended with code"):
        glm.fit_ensemble([clone(one), clone(one).set_params(start_state=1)], X, Y, n_jobs=2)
    assert len(broken) == 1


@pytest.mark.exhaustive
def test_members_know_the_range_of_inputs_and_can_be_trained_on():
    one = glm.GLMClassifier(
        n_steps=3, n_basis=2, n_epochs=1, device="runtime", random_state=0, scale_inputs=True
    )
    wide = 10.0 * X - 300
    pair = glm.fit_ensemble([clone(one), clone(one).set_params(start_state=1)], wide, Y)
    for member in pair:
        alone = clone(member).fit(wide, Y)
        np.testing.assert_array_equal(member.predict(wide), alone.predict(wide))
        np.testing.assert_allclose(
            member.partial_fit(wide, Y).weights_, alone.partial_fit(wide, Y).weights_, rtol=0, atol=1e-9
        )


def test_clones_hold_equal_bases_and_activations():
    one = glm.GLMClassifier(
        n_steps=3,
        basis=glm.IndicatorBasis(2),
        activation=glm.get_activation("probit"),
        n_epochs=1,
        device="runtime",
        random_state=0,
    )
    pair = glm.fit_ensemble([one, clone(one)], X, Y)
    np.testing.assert_array_equal(pair[0].weights_, pair[1].weights_)
    other = clone(one).set_params(basis=glm.IndicatorBasis(3))
    with pytest.raises(ValueError, match="number 1 has basis="):
        glm.fit_ensemble([one, other], X, Y)


def test_members_are_as_before_if_training_fails():
    one = glm.GLMClassifier(n_steps=3, n_basis=2, n_epochs=1, device="runtime", random_state=0)
    pair = [clone(one).fit(X, Y), clone(one)]
    before = [dict(vars(member)) for member in pair]
    with pytest.raises(ValueError, match="sample_weight"):
        glm.fit_ensemble(pair, X[:-1], Y[:-1], np.ones(3))
    assert [dict(vars(member)) for member in pair] == before


def test_weight_zero_leaves_a_presentation_out():
    odd = np.arange(len(Y)) % 4 < 2
    one = glm.GLMClassifier(n_steps=3, n_basis=2, n_epochs=1, device="runtime", random_state=0)
    with_nonsense = np.where(odd[:, np.newaxis], X, 255 - X)
    first = clone(one).fit(X, Y, sample_weight=odd)
    second = clone(one).fit(with_nonsense, Y, sample_weight=odd)
    np.testing.assert_array_equal(first.weights_, second.weights_)


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(n_steps=3), "n_steps=3"),
        (dict(random_state=2), "random_state=2"),
        (dict(decoding="rate"), "decoding='rate'"),
    ],
)
def test_members_must_share(change, message):
    one = glm.GLMClassifier(device="runtime", random_state=1)
    with pytest.raises(ValueError, match=f"classifiers may differ only in .*{message}"):
        glm.fit_ensemble([one, clone(one).set_params(**change)], X, Y)


def test_bad_arguments():
    one = glm.GLMClassifier(device="runtime", random_state=1)
    with pytest.raises(TypeError, match="classifiers must be a list"):
        glm.fit_ensemble([], X, Y)
    with pytest.raises(TypeError, match="classifiers must be a list"):
        glm.fit_ensemble(one, X, Y)
    with pytest.raises(ValueError, match="n_jobs must be an integer of at least 1, got 0"):
        glm.fit_ensemble([one], X, Y, n_jobs=0)
    with pytest.raises(ValueError, match="given twice"):
        glm.fit_ensemble([one, one], X, Y)
    for name, value in (("hidden", np.array([3, 2])), ("basis", np.ones((2, 2)))):
        with pytest.raises(TypeError, match=f"{name} must be"):
            glm.fit_ensemble([clone(one).set_params(**{name: value}), clone(one)], X, Y)
    with pytest.raises(ValueError, match=r"sample_weight must have the shape \(1, 40\)"):
        glm.fit_ensemble([one], X, Y, np.ones(40))
    with pytest.raises(ValueError, match="sample_weight must be at least 0"):
        one.fit(X, Y, -np.ones(40))
    with pytest.raises(ValueError, match="sample_weight must be above 0 for at least one"):
        one.fit(X, Y, np.zeros(40))
