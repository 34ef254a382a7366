"""The benchmark's bookkeeping; what it measures is not for tests."""

import json

import compare
import numpy as np
import pytest
from speed import comparisons, interleaved, report, scaling, workload
from speed.package import Package, accuracy, micros
from speed.peers import NumbaKernel

from glmbrian.cli import main
from glmbrian.support import cache


class Clockwork:
    """Takes a known time a presentation."""

    def __init__(self, micros, log, name):
        self.micros, self.log, self.name = micros, log, name

    def train(self, n_presentations, seed):
        self.log.append((self.name, n_presentations))
        return 1e-6 * self.micros * n_presentations


def test_contenders_take_turns_of_equal_length():
    log = []
    contenders = {name: Clockwork(micros, log, name) for name, micros in (("a", 2), ("b", 500))}
    times = interleaved.take_turns(contenders, n_rounds=3, seconds=0.1)
    assert times["a"] == pytest.approx([2, 2, 2]) and times["b"] == pytest.approx([500] * 3)
    turns = log[-6:]
    assert [name for name, _ in turns] == ["a", "b"] * 3
    assert dict(turns) == {"a": pytest.approx(50_000, abs=1), "b": pytest.approx(200, abs=1)}


def test_spread_and_ratios():
    assert interleaved.spread([3, 1, 2]) == {"median": 2, "least": 1, "greatest": 3}
    assert interleaved.ratios([1, 2, 9], [2, 2, 3])["median"] == 1


def test_exponents():
    costs = [interleaved.spread([value]) for value in (2.0, 4.0, 16.0)]
    row = scaling._row("steps", (1, 2, 4), costs)
    assert row["exponents"] == pytest.approx([1, 2, 1.5])


def test_random_images_spike_as_often_as_asked():
    made = workload.random_images(n_inputs=1000, n_images=100, spike_fraction=0.03)
    assert made.images.mean() / 510 == pytest.approx(0.03, rel=0.05)
    assert made.images.shape == (100, 1000) and made.images.dtype == np.uint8


def test_repeated_images():
    made = workload.random_images(n_inputs=5, n_images=4)
    more = workload.repeated(made, 10)
    np.testing.assert_array_equal(more.images[4:8], made.images)
    assert len(more.images) == len(more.labels) == 10


def test_whole_mnist_is_read_from_idx_files(tmp_path):
    images = np.arange(2 * 28 * 28).reshape(2, 28, 28) % 251
    for name, values in (("images-idx3", images), ("labels-idx1", [3, 4])):
        values = np.asarray(values, dtype=np.uint8)
        header = bytes([0, 0, 8, values.ndim]) + b"".join(n.to_bytes(4, "big") for n in values.shape)
        (tmp_path / f"train-{name}-ubyte").write_bytes(header + values.tobytes())
    whole = workload.whole_mnist(tmp_path, 4)
    np.testing.assert_array_equal(whole.images, images.reshape(2, 784))
    np.testing.assert_array_equal(whole.labels, [3, 4])


@pytest.mark.compiled
def test_the_package_is_measured_on_what_it_learns():
    digits = workload.repeated(workload.mnist(2, 4), 400)
    contender = Package(digits)
    assert micros(contender, 2000, seed=1) > 0
    assert contender.n_presentations == 2000
    assert accuracy(contender, digits.images, digits.labels) > 0.95


@pytest.mark.compiled
@pytest.mark.exhaustive
def test_replicas_count_each():
    contender = Package(workload.repeated(workload.mnist(2, 4), 50), n_replicas=2)
    contender.train(100, seed=0)
    assert contender.n_presentations == 200


def some_results():
    values = interleaved.spread([1.0, 2.0, 400.0])
    rows = [
        {"n_classes": 2, "n_steps": 4, "contender": name, "microseconds": values, "ratio": values,
         "accuracy": 0.9}
        for name in ("glmbrian", "hand-tuned C++")
    ]  # fmt: skip
    rows[1]["counts"] = {"spikes": 12.3, "bytes_read": 4567.0}
    return {
        "machine": report.machine(),
        "date": "2026-01-01",
        "quick": True,
        "n_rounds": 3,
        "unavailable": {"Numba": "numba not found"},
        "training": rows,
        "early_stopping": {"n_steps": 16, "ratio": values, "mean_decision_step": 3.5},
        "second_fit": {"same_process": values, "fresh_process": values},
        "many_images": {"n_images": 60_000, "microseconds": values, "ratio": values,
                        "program_memory": 1e7, "python_memory": 3e8, "python_before": 2e8},
        "imports": {"brian2": values, "added": values},
        "scaling": [scaling._row("images", (1, 10), [values, values])],
    }  # fmt: skip


def test_report(tmp_path):
    report.write(some_results(), tmp_path / "new")
    text = (tmp_path / "new" / "report.md").read_text()
    assert "| 2 | 4 | hand-tuned C++ | 2 (1 to 400) | 2 (1 to 400) | 0.900 |" in text
    assert "| 2 | 4 | 12.3 | 4,567 |" in text
    assert "Numba was not measured: numba not found." in text
    assert json.loads((tmp_path / "new" / "benchmark.json").read_text())["n_rounds"] == 3
    for name in ("training.png", "scaling.png"):
        assert (tmp_path / "new" / name).stat().st_size > 5000


@pytest.fixture
def no_measuring(monkeypatch):
    monkeypatch.setattr(compare, "find_compiler", lambda: "g++")
    monkeypatch.setattr(compare, "benchmark", lambda *args, **kwargs: some_results())


def test_command(no_measuring, tmp_path, capsys):
    compare.main(["--quick", "--output", str(tmp_path / "out")])
    assert (tmp_path / "out" / "report.md").exists()
    assert "## Training" in capsys.readouterr().out


def refused(arguments, capsys):
    with pytest.raises(SystemExit) as refusal:
        compare.main(arguments)
    assert refusal.value.code == 2
    return capsys.readouterr().err


def test_command_refuses_before_it_measures(no_measuring, tmp_path, monkeypatch, capsys):
    assert "--rounds must be at least 1, got 0" in refused(["--rounds", "0"], capsys)
    (tmp_path / "file").write_text("")
    assert "--output" in refused(["--output", str(tmp_path / "file")], capsys)
    assert "--data-dir" in refused(["--data-dir", str(tmp_path / "none")], capsys)
    monkeypatch.setattr(compare, "find_compiler", lambda: None)
    assert "compiler" in refused([], capsys)


def test_cache_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GLMBRIAN_CACHE_DIR", str(tmp_path))
    key = cache.content_key("any")
    with cache.find_or_build(key, lambda folder: None):
        program = tmp_path / "programs" / key
    assert main(["cache", "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["programs"] == 1 and told["folder"] == str(tmp_path)
    assert program.exists()
    assert main(["cache", "--clear"]) == 0
    assert "programs removed" in capsys.readouterr().out
    assert not program.exists()


def test_peers_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr(NumbaKernel, "requires", ("no_such_module",))
    assert "no_such_module not found" in comparisons.unavailable()["Numba"]
