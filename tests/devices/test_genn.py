"""GeNN: code generation wherever brian2genn is, compiling and running where GeNN is."""

import os
import subprocess
import sys

import numpy as np
import pytest
from brian2 import Network, SpikeMonitor, StateMonitor, defaultclock, ms, prefs, set_device
from conftest import levels_above_draws

import glmbrian as glm
from glmbrian.classifier.training import prepare
from glmbrian.core.randomness import derive_keys
from glmbrian.devices import genn, genn_environment, get_device
from glmbrian.devices.genn_environment import GeNNNotFound, check_environment, check_packages
from glmbrian.support.progress import Silent

try:
    check_packages()
    why_no_code = ""
except GeNNNotFound as error:
    why_no_code = str(error)

try:
    check_environment(gpu=False)
    why_no_run = ""
except GeNNNotFound as error:
    why_no_run = f"GeNN programs are not run: {error}"

needs_brian2genn = pytest.mark.skipif(bool(why_no_code), reason=why_no_code)
needs_genn = [
    pytest.mark.skipif(bool(why_no_run), reason=why_no_run),
    pytest.mark.compiled,
    pytest.mark.long,
]
RULES = ["first-to-spike", "rate"]
BASIS = glm.ExponentialBasis([1.5, 4.5], 6)


class Alternating(glm.Objective):
    """The right output spikes in steps 0, 3, 4, 7, ..., and the others in steps 1, 2, 5, 6, ..."""

    name = "rate"  # of another objective
    learns_feedback = True
    cpp = """
    static constexpr bool clamps_outputs = true, learns_feedback = true, stops_at_first_spike = false;
    static bool desired(int step, int neuron, int label, int64_t period)
    {
        return ((step + 1) / 2 % 2 == 0) == (neuron == label);
    }
    template <class Activation, class Outputs, int STEPS, int NEURONS>
    static double gradient(const double (&u)[STEPS][NEURONS], Outputs outputs, int label,
                           double (&grad)[STEPS][NEURONS])
    {
        return glmbrian::rate_gradient<Activation>(u, outputs, grad);
    }
"""

    def desired(self, label, n_steps, n_outputs):
        early = (np.arange(n_steps) + 1) // 2 % 2 == 0
        return (early[:, np.newaxis] == (np.arange(n_outputs) == label)).astype(np.uint8)

    def gradient(self, potentials, outputs, label, activation):
        return glm.learning.rate_gradient(potentials, outputs, activation)


class Free(Alternating):
    name = "free"
    clamps_outputs = False


def classifier(rule, device, **settings):
    common = dict(n_steps=5, n_basis=3, n_epochs=1, random_state=4, gpu=False, verbose=False)
    return glm.GLMClassifier(rule, device=device, **{**common, **settings})


def outcome_of(one, X):
    """What the classifier's device observes in a test."""
    run = one.prepare_test(X)
    device = get_device(one.device)
    return device.test(run.network, run.parameters, run.inputs, run.testing, Silent())[0]


def write_project(folder, rule, gpu, n_replicas=1, **settings):
    """Generate the GeNN project of a small network, which needs no GeNN."""
    from dataclasses import replace

    X, y = np.zeros((4, 6), dtype=np.uint8), [0, 1, 0, 1]
    prepared = prepare([classifier(rule, "genn", **settings).settings], X, y)
    network = replace(prepared.network, n_replicas=n_replicas, gpu=gpu)
    genn.generate_project(network, folder)
    return (folder / "magicnetwork_model.cpp").read_text(), (folder / "engine.cpp").read_text()


# ------------------------------------------------------------------ code generation


@needs_brian2genn
@pytest.mark.parametrize("rule", RULES)
def test_generated_kernels(rule, tmp_path):
    model, engine = write_project(tmp_path, rule, gpu=False)
    # inputs draw their spikes, and each spike learns and passes its weight on
    assert "glm_bernoulli($(key_low), $(key_high), $(presentation), $(step), $(i), $(level))" in model
    for k in range(3):
        assert f"gradient_{k}" in model and f"glm_outputs_synapses_{k}WEIGHTUPDATE" in model
    assert ("feedback_weight_0" in model) == (rule == "rate")
    # the host has its turn once a phase, and never between
    assert "i % 5 == 0" in engine and "i % 1 == 0" not in engine
    header = (tmp_path / "glmbrian_model.hpp").read_text()
    assert "constexpr int N_STEPS = 5;" in header
    assert "genn-buildmodel.sh -c" in (tmp_path / "Makefile").read_text()


@needs_brian2genn
def test_generated_hidden_layers(tmp_path):
    feedback = glm.IndicatorBasis(1)
    model, engine = write_project(
        tmp_path, "first-to-spike", gpu=False, hidden=(8, 9), hidden_feedback=feedback
    )
    for n, name in ((8, "glm_hidden_0"), (9, "glm_hidden_1"), (2, "glm_outputs")):
        assert f'addNeuronPopulation<{name}NEURON>("{name}", {n},' in model
        code = model.partition(f"class {name}_synapses_0WEIGHTUPDATE")[2].partition("IMPLEMENT_MODEL")[
            0
        ]
        assert ("gradient_0" in code) == (name == "glm_outputs")
    # the host needs the spikes of hidden neurons when it is the outputs' turn
    assert engine.index("std::copy_n(record_4glm_hidden_1") < engine.index("_run_glm_outputs")
    header = (tmp_path / "glmbrian_model.hpp").read_text()
    assert (
        "LAYERS[] = {{6, 8, 3, 1, glm_hidden_0_weight, glm_hidden_0_recorded}, {8, 9, 3, 1," in header
    )


@needs_brian2genn
def test_generated_for_a_gpu_and_for_replicas(tmp_path):
    model, _ = write_project(tmp_path, "first-to-spike", gpu=True, n_replicas=7)
    assert "genn-buildmodel.sh -i" in (tmp_path / "Makefile").read_text()
    assert 'addNeuronPopulation<glm_outputsNEURON>("glm_outputs", 14,' in model
    assert "constexpr int N_REPLICAS = 7;" in (tmp_path / "glmbrian_model.hpp").read_text()


@needs_brian2genn
@pytest.mark.parametrize("activation, text", [("probit", "normal_cdf"), ("cloglog", "exp")])
def test_generated_activations(activation, text, tmp_path):
    model, _ = write_project(tmp_path, "rate", gpu=False, activation=activation)
    assert text in model


@needs_brian2genn
def test_generating_changes_nothing_for_the_user(tmp_path):
    import brian2genn  # noqa: F401  (which registers preferences)

    names = [
        "core.network.default_schedule",
        "codegen.loop_invariant_optimisations",
        "codegen.cpp.headers",
        "devices.genn.connectivity",
    ]
    before = [prefs[name] for name in names]
    write_project(tmp_path, "rate", gpu=False)
    assert [prefs[name] for name in names] == before


@needs_brian2genn
def test_synapses_by_hand_are_one_object_a_function():
    set_device("genn", build_on_run=False)
    defaultclock.dt = 1 * ms
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(3))
    synapses = glm.GLMSynapses(neurons, neurons)
    assert len([part for part in synapses.contained_objects if hasattr(part, "w_1")]) == 1
    synapses.w = 2.0
    assert synapses.w.shape == (2, 2, 3) and (synapses.w == 2).all()
    with pytest.raises(NotImplementedError, match="GeNN cannot end a run at a spike"):
        glm.FirstSpikeStop(neurons)


# ------------------------------------------------------------------ errors


def test_missing_parts_are_named(monkeypatch, tmp_path):
    found = {"brian2genn": "1.7.0", "brian2": "2.5.4"}
    monkeypatch.setattr(genn_environment, "version", lambda name: found[name])
    monkeypatch.setattr(genn_environment, "find_genn", lambda: None)
    monkeypatch.setattr(genn_environment, "find_cuda", lambda: None)
    with pytest.raises(GeNNNotFound, match="set the environment variable GENN_PATH"):
        check_environment(gpu=False)
    monkeypatch.setattr(genn_environment, "find_genn", lambda: str(tmp_path))
    with pytest.raises(GeNNNotFound, match="is not the folder of GeNN"):
        check_environment(gpu=False)
    (tmp_path / "version.txt").write_text("5.1.0\n")
    with pytest.raises(GeNNNotFound, match="needs GeNN 4, but .* is GeNN 5.1.0"):
        check_environment(gpu=False)
    (tmp_path / "version.txt").write_text("4.9.0\n")
    check_environment(gpu=False)
    with pytest.raises(GeNNNotFound, match="CUDA_PATH .*--no-gpu"):
        check_environment(gpu=True)
    found["brian2"] = "2.9.0"
    with pytest.raises(GeNNNotFound, match="needs Brian 2 before 2.6, but 2.9.0 is installed"):
        check_environment(gpu=False)

    def missing(name):
        raise genn_environment.PackageNotFoundError(name)

    monkeypatch.setattr(genn_environment, "version", missing)
    with pytest.raises(GeNNNotFound, match="needs brian2genn, .*make genn-env"):
        check_environment(gpu=False)


@pytest.mark.parametrize("chosen", ["genn", "./genn/", "../here/genn", "~/genn"])
@pytest.mark.parametrize("name, find", [("GENN_PATH", "find_genn"), ("CUDA_PATH", "find_cuda")])
def test_folders_are_the_same_from_everywhere(name, find, chosen, tmp_path, monkeypatch):
    (tmp_path / "here" / "genn").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "here"))
    monkeypatch.setenv(name, chosen)
    found = getattr(genn_environment, find)()
    assert os.path.isabs(found) and os.path.samefile(found, tmp_path / "here" / "genn")


def test_looking_for_genn_does_not_import_brian2genn(monkeypatch):
    """Importing it would register a device and preferences."""
    monkeypatch.delenv("GENN_PATH", raising=False)
    before = "brian2genn" in sys.modules
    genn_environment.find_genn()
    assert ("brian2genn" in sys.modules) == before


@pytest.mark.parametrize(
    "settings, X, message",
    [
        (dict(batch_size=2), np.zeros((2, 4)), "batch_size must be 1 on device='genn'"),
        (dict(optimizer="adam"), np.zeros((2, 4)), "optimizer must be 'sgd' .* on device='genn'"),
        (dict(clip_norm=1.0), np.zeros((2, 4)), "clip_norm None on device='genn'"),
        ({}, np.zeros((2, 5, 4)), "X must hold intensities .* on device='genn'"),
        (dict(n_epochs=10**9), np.zeros((2, 4)), "n_epochs must be smaller on device='genn'"),
        (dict(gpu="yes"), np.zeros((2, 4)), "gpu must be None, True or False"),
        (dict(hidden=(3,)), np.zeros((2, 4)), "hidden layers cannot be trained on device='genn'"),
    ],
)
def test_what_genn_cannot_do(settings, X, message):
    with pytest.raises(ValueError, match=message):
        classifier("rate", "genn", **settings).fit(X, [0, 1])


def test_free_outputs_cannot_be_trained():
    with pytest.raises(ValueError, match="objective 'free' leaves the outputs free in training"):
        classifier(Free(), "genn").fit(np.zeros((2, 4)), [0, 1])


# ------------------------------------------------------------------ compiling and running


class TestRun:
    pytestmark = needs_genn

    @pytest.mark.parametrize("rule", RULES)
    @pytest.mark.parametrize("classes", [(5, 7), "all"])
    def test_parameters_are_those_of_cpp_standalone(self, rule, classes):
        digits = glm.datasets.load_mnist(classes, 100 if classes == (5, 7) else 20, 20)
        fitted = []
        for device in ("cpp_standalone", "genn"):
            one = classifier(rule, device, n_steps=8, n_basis=8)
            fitted.append(one.fit(digits.X_train, digits.y_train))
            assert one.timing_["presentations"] == 200
        for name in ("weights_", "feedback_", "bias_", "history_"):
            first, second = (getattr(one, name) for one in fitted)
            np.testing.assert_allclose(first, second, rtol=0, atol=1e-9, err_msg=name)
        expected = fitted[0].evaluate(digits.X_test, digits.y_test)
        assert fitted[1].evaluate(digits.X_test, digits.y_test) == pytest.approx(expected)
        np.testing.assert_array_equal(*(one.predict(digits.X_test) for one in fitted))
        # with the right numbers, a part of the data gives a part of the results
        part = fitted[1].predict(digits.X_test[13:], first_presentation=13)
        np.testing.assert_array_equal(part, fitted[0].predict(digits.X_test)[13:])

    def test_an_objective_of_ones_own(self):
        """It is trained as itself, whatever its name."""
        digits = glm.datasets.load_mnist((5, 7), 20, 20)
        one, other = (
            classifier(Alternating(), device, learning_rate=0.05) for device in ("runtime", "genn")
        )
        one.fit(digits.X_train, digits.y_train)
        other.fit(digits.X_train, digits.y_train)
        for name in ("weights_", "feedback_", "bias_", "history_"):
            expected, found = getattr(one, name), getattr(other, name)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=name)
        assert one.evaluate(digits.X_test, digits.y_test) == pytest.approx(
            other.evaluate(digits.X_test, digits.y_test)
        )

    def test_averages_are_those_of_cpp_standalone(self):
        """Means over the last two and three of five epochs."""
        digits = glm.datasets.load_mnist((5, 7), 20, 0)
        for rule, average in (("first-to-spike", "auto"), ("rate", 0.6)):
            one, other = (
                classifier(rule, device, n_epochs=5, average=average, learning_rate_schedule="linear")
                for device in ("cpp_standalone", "genn")
            )
            one.fit(digits.X_train, digits.y_train)
            other.fit(digits.X_train, digits.y_train)
            last = classifier(
                rule, "cpp_standalone", n_epochs=5, average=0, learning_rate_schedule="linear"
            )
            last.fit(digits.X_train, digits.y_train)
            assert np.abs(last.weights_ - one.weights_).max() > 1e-4
            for name in ("weights_", "feedback_", "bias_", "history_"):
                expected, found = getattr(one, name), getattr(other, name)
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=name)

    def test_a_second_draw_decides_between_whole_levels(self):
        random = np.random.default_rng(0)
        one, other = (classifier("first-to-spike", device) for device in ("cpp_standalone", "genn"))
        keys = derive_keys(4, 10, 13)  # for training and for tests
        X = levels_above_draws(random, keys[0], range(40), 4, 6).astype(float) / 32768
        y = np.arange(40) % 2
        np.testing.assert_allclose(one.fit(X, y).weights_, other.fit(X, y).weights_, rtol=0, atol=1e-9)
        X = levels_above_draws(random, keys[1], range(40), 5, 6).astype(float) / 32768
        assert one.evaluate(X, y) == pytest.approx(other.evaluate(X, y))
        np.testing.assert_array_equal(one.predict(X), other.predict(X))

    def test_replicas_are_their_own_runs(self):
        digits = glm.datasets.load_mnist((5, 7), 20, 0)
        weights = np.ones((3, 40))
        weights[2, ::3] = 0

        def members(device):
            return [
                classifier(
                    "rate",
                    device,
                    learning_rate=rate,
                    start_state=state,
                    target_period=3,
                    target_start=2,
                )
                for rate, state in ((0.01, None), (0.05, 1), (0.02, 2))
            ]

        together = glm.fit_ensemble(members("genn"), digits.X_train, digits.y_train, weights)
        for replica, alone, weight in zip(together, members("cpp_standalone"), weights):
            alone.fit(digits.X_train, digits.y_train, sample_weight=weight)
            np.testing.assert_allclose(replica.weights_, alone.weights_, rtol=0, atol=1e-9)
            np.testing.assert_allclose(replica.feedback_, alone.feedback_, rtol=0, atol=1e-9)

    @pytest.mark.parametrize("rule, sizes", [("first-to-spike", (12,)), ("rate", (8, 6))])
    def test_hidden_layers_trained_elsewhere(self, rule, sizes, tmp_path):
        digits = glm.datasets.load_mnist((5, 7), 20, 50)
        hidden = dict(hidden=sizes, hidden_feedback=glm.IndicatorBasis(2), hidden_basis=BASIS)
        trained = classifier(rule, "runtime", n_steps=7, basis=BASIS, learning_rate=0.05, **hidden)
        trained.fit(digits.X_train, digits.y_train)
        trained.save(tmp_path / "model.npz")
        tested = glm.GLMClassifier.load(tmp_path / "model.npz").set_params(device="genn")
        outcomes = [outcome_of(one, digits.X_test) for one in (trained, tested)]
        for name, values in vars(outcomes[0]).items():
            other = vars(outcomes[1])[name]
            np.testing.assert_allclose(values, other, rtol=0, atol=1e-9, err_msg=name)
        # decisions come early and late, and spikes of hidden neurons make a difference
        steps, spikes = outcomes[0].steps, outcomes[0].hidden_spikes
        assert set(steps) > {2, 3, 4, 7} if rule == "first-to-spike" else set(steps) == {7}
        assert (spikes.max(axis=0) > spikes.min(axis=0) + 3).all()
        assert np.ptp(outcomes[0].potential_last, axis=0).min() > 0.1
        np.testing.assert_array_equal(*(one.predict(digits.X_test) for one in (trained, tested)))
        measured = [one.evaluate(digits.X_test, digits.y_test) for one in (trained, tested)]
        assert measured[0] == measured[1]
        # what it has learned stays
        with pytest.raises(ValueError, match="hidden layers cannot be trained on device='genn'"):
            tested.partial_fit(digits.X_train, digits.y_train)
        np.testing.assert_array_equal(tested.weights_, trained.weights_)

    def test_exported_project(self, tmp_path):
        digits = glm.datasets.load_mnist((5, 7), 20, 20)
        one = classifier("first-to-spike", "genn")
        folder = tmp_path / "moved" / "project"
        one.export(digits.X_train, digits.y_train, tmp_path / "project")
        folder.parent.mkdir()
        (tmp_path / "project").rename(folder)
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "GENN_PATH": genn_environment.find_genn(),
        }
        subprocess.run(["make", "run"], cwd=folder, check=True, capture_output=True, env=environment)
        exported = glm.GLMClassifier.load(folder)
        exported.device = one.device = "cpp_standalone"
        one.fit(digits.X_train, digits.y_train)
        np.testing.assert_allclose(exported.weights_, one.weights_, rtol=0, atol=1e-9)
        assert exported.evaluate(digits.X_test, digits.y_test) == pytest.approx(
            one.evaluate(digits.X_test, digits.y_test)
        )
        # Settings can be changed without compiling; impossible ones are refused.
        settings = folder / "job" / "settings.txt"
        text = settings.read_text()
        n_epochs = one.n_epochs + 1
        settings.write_text(text.replace(f"n_epochs {one.n_epochs}", f"n_epochs {n_epochs}"))
        subprocess.run(["make", "run"], cwd=folder, check=True, capture_output=True, env=environment)
        exported = glm.GLMClassifier.load(folder)
        one.set_params(n_epochs=n_epochs).fit(digits.X_train, digits.y_train)
        np.testing.assert_allclose(exported.weights_, one.weights_, rtol=0, atol=1e-9)
        assert exported.n_presentations_ == one.n_presentations_ and exported.n_epochs == n_epochs
        for changed, said in [
            (text.replace("batch_size 1", "batch_size 4"), "batch_size must be 1 on GeNN"),
            (text.replace("weight_decay 0.0", "weight_decay 1"), "weight_decay must be 0 on GeNN"),
            (text.replace("clip_norm 0.0", "clip_norm 1"), "clip_norm must be 0 on GeNN"),
            (
                text.replace("adversarial_budget 0", "adversarial_budget 1"),
                "adversarial_budget must be 0 on GeNN",
            ),
            (text.replace("n_epochs ", "n_epochs -"), "n_epochs must be an integer from 1"),
        ]:
            settings.write_text(changed)
            done = subprocess.run(
                ["make", "run"], cwd=folder, capture_output=True, text=True, env=environment
            )
            assert done.returncode != 0 and said in done.stderr
        # A run whose length does not fit the settings leaves no results.
        settings.write_text(text)
        environment["LD_LIBRARY_PATH"] = str(folder / "magicnetwork_model_CODE")
        done = subprocess.run(
            ["./main", "test", "0.006"], cwd=folder, capture_output=True, text=True, env=environment
        )
        assert done.returncode != 0 and "the run must take exactly" in done.stderr
        with pytest.raises(FileNotFoundError, match="has not run yet"):
            glm.GLMClassifier.load(folder)

    def test_a_network_by_hand(self, tmp_path):
        on_numpy = network_by_hand()
        import brian2genn  # noqa: F401  (which registers preferences)

        prefs.devices.genn.connectivity = "SPARSE"
        prefs.devices.genn.path = genn_environment.find_genn()
        set_device("genn", use_GPU=False, directory=str(tmp_path), with_output=False)
        for first, second in zip(on_numpy, network_by_hand()):
            np.testing.assert_allclose(first, second, rtol=0, atol=1e-9)

    def test_a_network_by_hand_in_single_precision(self, tmp_path):
        on_numpy = network_by_hand()
        import brian2genn  # noqa: F401  (which registers preferences)

        prefs.devices.genn.connectivity = "SPARSE"
        prefs.devices.genn.path = genn_environment.find_genn()
        set_device("genn", use_GPU=False, directory=str(tmp_path), with_output=False)
        prefs.core.default_float_dtype = np.float32
        # Brian2GeNN then lets GeNN sum arriving weights in single precision.
        for first, second in zip(on_numpy, network_by_hand()):
            np.testing.assert_allclose(first, second, rtol=0, atol=1e-5)


def network_by_hand():
    """Return input spikes, output spikes and potentials of a recurrent network."""
    defaultclock.dt = 1 * ms
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (3, 30)) / 255
    # a second draw decides about every other pixel
    images[:, ::2] = levels_above_draws(random, *derive_keys(1, 0), range(3), 10, 30)[:, ::2] / 32768
    encoder = glm.RateEncoder(images, n_steps=10, random_state=1)
    basis = glm.RaisedCosineBasis(3, 5)
    neurons = glm.GLMNeurons(
        4,
        {"stimulus": basis, "coupling": basis},
        feedback_basis=basis,
        random_state=2,
        activation="probit",
    )
    neurons.bias = -1
    neurons.feedback_weights = [-2, -1, 0]
    forward = glm.GLMSynapses(encoder, neurons)
    forward.w = random.normal(scale=0.2, size=(30, 4, 3))
    lateral = glm.GLMSynapses(neurons, neurons, "coupling", "i != j")
    lateral.w = -0.3
    inputs, outputs = SpikeMonitor(encoder), SpikeMonitor(neurons)
    potential = StateMonitor(neurons, "u", record=True, when="end")
    network = Network(encoder, neurons, forward, lateral, inputs, outputs, potential)
    network.run(30 * ms, namespace={})
    trains = []
    for monitor, size in ((inputs, 30), (outputs, 4)):
        train = np.zeros((30, size))
        train[np.round(monitor.t / ms).astype(int), np.asarray(monitor.i)] = 1
        assert 0 < train.mean() < 1
        trains.append(train)
    return (*trains, np.array(potential.u[:]))
