"""The scripts in docs/examples: the same spikes on every device, and what they are to show."""

import importlib.util
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from brian2 import device, ms, set_device

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py"))
SHORT = {
    "cuba_readout": dict(duration=300 * ms, seed=5),
    "coupled_population": dict(duration=500 * ms, seed=5),
    "single_neurons": dict(n_repeats=5, seed=5),
}


def example(name):
    """Import an example, which is no part of the package."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_standalone(name):
    """Return what an example gave on the standalone device."""
    set_device("cpp_standalone", directory=None)
    device.build_options["with_output"] = False
    return example(name).simulate(**SHORT[name])


def leaves(result):
    """Return the arrays in nested tuples, lists and dicts."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [np.asarray(result)]


def test_every_example_is_tested():
    assert sorted(SHORT) == EXAMPLES


@pytest.fixture(scope="module")
def on_numpy():
    """What each example gave on Brian's NumPy target."""
    return {name: example(name).simulate(**SHORT[name]) for name in EXAMPLES}


@pytest.mark.compiled
@pytest.mark.parametrize("name", EXAMPLES)
def test_devices_give_the_same_spikes(name, on_numpy):
    ours, others = leaves(on_numpy[name]), leaves(in_standalone(name))
    assert len(ours) == len(others)
    for one, other in zip(ours, others):
        # Spike times, indices and trains are to the last bit what multiples of dt are;
        # potentials are summed in another order.
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-9)


# ------------------------------------------------------------------ what they show


def test_the_balanced_network_fires_irregularly(on_numpy):
    (times, indices), (readout_times, readouts), potentials = on_numpy["cuba_readout"]
    late = times >= 100
    rate = late.sum() / 4000 / 0.2
    assert 3 < rate < 12
    trains = [times[indices == neuron] for neuron in range(4000)]
    intervals = np.concatenate([np.diff(train) for train in trains])
    assert np.std(intervals) / np.mean(intervals) > 0.5
    # in no rhythm of the whole network
    counts = np.histogram(times[late], np.arange(100, 301, 2))[0]
    assert np.std(counts) / np.mean(counts) < 0.6
    assert set(readouts) == {0, 1, 2} and set(np.round(readout_times)) <= set(range(300))


def test_readouts_see_what_their_kernels_weigh(on_numpy):
    """Potentials are those of the paper's equation for spikes binned to 1 ms."""
    module = example("cuba_readout")
    (times, indices), _, potentials = on_numpy["cuba_readout"]
    random = np.random.default_rng(5)
    n = module.N_EXCITATORY + module.N_INHIBITORY
    random.uniform(size=n)
    for n_pre in (module.N_EXCITATORY, module.N_INHIBITORY):
        module.random_pairs(random, n_pre, n)
    for k, (weights, bias) in enumerate(module.READOUTS.values()):
        listens = random.permutation(module.N_EXCITATORY) < module.N_INPUTS
        excitatory = indices < module.N_EXCITATORY
        heard = times[excitatory][listens[indices[excitatory]]]
        counts = np.bincount(np.floor(heard + 1e-6).astype(int), minlength=300)
        kernel = module.BASIS.kernels(weights)
        expected = bias + np.concatenate([[0], np.convolve(counts, kernel)[:299]])
        np.testing.assert_allclose(potentials[:, k], expected, rtol=0, atol=1e-9)


def test_coupling_adds_correlations_of_some_milliseconds():
    module = example("coupled_population")
    spikes, _, _ = module.simulate(duration=4000 * ms, seed=1)
    alike = module.pairs(module.ON, module.ON) + module.pairs(module.OFF, module.OFF)
    opposite = module.pairs(module.ON, module.OFF)
    near, far = {}, {}
    for name, trains in spikes.items():
        assert 5 < 1000 * trains.mean() < 50
        lags, ratio = module.cross_correlogram(trains, alike)
        near[name] = ratio[(lags != 0) & (abs(lags) <= 2)].mean()
        far[name] = ratio[abs(lags) > 35].mean()
        at_once = module.cross_correlogram(trains, opposite, longest=2)[1]
        assert at_once.mean() < 0.6
    assert near["uncoupled"] > 1.3  # from the stimulus that they share
    assert near["coupled"] > 1.2 * near["uncoupled"]
    assert far["coupled"] == pytest.approx(far["uncoupled"], abs=0.15)


@pytest.fixture(scope="module")
def repeats():
    module = example("single_neurons")
    trains, _, _ = module.simulate(n_repeats=30, seed=2)
    return module, trains


def test_tonic_firing_is_regular_and_steady(repeats):
    module, trains = repeats
    intervals = module.intervals(trains["tonic"])
    assert np.std(intervals) / np.mean(intervals) < 0.2
    early, late = (module.rate(trains["tonic"], *span) for span in ((50, 500), (500, 950)))
    assert late == pytest.approx(early, rel=0.1)


def test_bursts_have_short_intervals_and_long_ones_between(repeats):
    module, trains = repeats
    intervals = module.intervals(trains["bursting"])
    assert np.mean(intervals < 10) > 0.7 and np.mean(intervals > 50) > 0.05
    assert np.mean((intervals >= 10) & (intervals <= 50)) < 0.02
    assert np.std(intervals) / np.mean(intervals) > 1.5


def test_adaptation_lowers_the_rate(repeats):
    module, trains = repeats
    first, last = (module.rate(trains["adapting"], *span) for span in ((0, 100), (500, 1000)))
    assert first > 2.5 * last > 0
    assert np.mean(module.intervals(trains["adapting"]) < 10) < 0.1  # no bursts


def test_neurons_rest_without_current(repeats):
    module, trains = repeats
    for train in trains.values():
        assert module.rate(train, -200, 0) < 5 < module.rate(train, 0, 1000)


# ------------------------------------------------------------------ command line


@pytest.fixture
def command(monkeypatch):
    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")

    return run


@pytest.mark.parametrize("name", EXAMPLES)
def test_command_line_draws_a_figure(name, command, tmp_path):
    from matplotlib.image import imread

    command(name, "--device", "runtime", "--output", tmp_path / "figure.png")
    picture = imread(tmp_path / "figure.png")[..., :3]
    assert min(picture.shape[:2]) > 800 and 0.02 < np.mean(picture < 0.5) < 0.5
    assert np.ptp(picture, axis=2).max() < 0.01  # legible without colour


@pytest.mark.parametrize("name", EXAMPLES)
def test_command_line_says_what_is_allowed(name, command, capsys):
    with pytest.raises(SystemExit):
        command(name, "--device", "genn")
    assert "cpp_standalone" in capsys.readouterr().err
