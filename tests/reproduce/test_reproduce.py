"""Reproducing the paper: what is run, what is counted, and what becomes of it."""

import csv
import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from sklearn.model_selection import GridSearchCV

import glmbrian as glm
from glmbrian.cli import main
from glmbrian.core.decisions import measures
from glmbrian.core.objectives import OBJECTIVES, FirstToSpike, Rate
from glmbrian.devices.problem import Outcome
from glmbrian.reproduce import FULL, QUICK, claims, complexity, figures, local_workers, tables
from glmbrian.reproduce.fits import AnnFit, Fit
from glmbrian.reproduce.pipeline import reproduce
from glmbrian.reproduce.protocol import TARGETS, Design
from glmbrian.reproduce.redrawn import Redrawn, redraw
from glmbrian.reproduce.selection import mean_accuracies, selected, selection_fits

DIGITS = glm.datasets.load_mnist((5, 7), 30, 30)
DECODINGS = ("first-to-spike", "rate")


def fitted(decoding, n_steps=4, **parameters):
    settings = dict(n_steps=n_steps, n_basis=2, n_epochs=2, device="runtime", random_state=3)
    classifier = glm.GLMClassifier(decoding, **{**settings, **parameters})
    return classifier.fit(DIGITS.X_train, DIGITS.y_train)


# ------------------------------------------------------------------ the protocol


def test_the_full_protocol_is_the_papers():
    assert FULL.class_sets == ((5, 7), (5, 7, 1, 9), tuple(range(10)))
    assert (FULL.n_train, FULL.n_test, FULL.n_epochs, FULL.n_folds) == (1000, 1000, 200, 10)
    assert FULL.learning_rates == (1e-3, 1e-4) and FULL.n_seeds >= 5
    points = FULL.designs("accuracy-vs-k")
    assert {point.n_steps for point in points} == {4}
    assert {point.n_basis for point in points} == {1, 2, 3, 4}
    points = FULL.designs("accuracy-vs-complexity")
    assert all(point.classes == (5, 7) and point.n_basis == point.n_steps for point in points)
    assert {1, 2, 4, 8, 16, 32} <= {point.n_steps for point in points}
    paper = Fit("paper", points[0], 1e-3, 200, 0, 1000, 1000).classifier().get_params()
    assert {name: paper[name] for name in glm.PAPER_SETTINGS} == glm.PAPER_SETTINGS
    assert paper["target_period"] == 4  # one spike after every three zeros


def test_objectives_that_are_added_are_not_compared(monkeypatch):
    before = [FULL.designs(target) for target in TARGETS]
    monkeypatch.setitem(OBJECTIVES, "another", Rate)
    assert [FULL.designs(target) for target in TARGETS] == before
    assert {design.decoding for design in before[1]} == {FirstToSpike.name, Rate.name}


def test_basis_needs_no_fits():
    assert FULL.designs("basis") == []


# ------------------------------------------------------------------ spikes and operations


@pytest.mark.parametrize("decoding", DECODINGS)
def test_spikes_drawn_again_are_those_that_brian_records(decoding):
    classifier = fitted(decoding, bias_init=-1.0)
    recording = redraw(classifier, DIGITS.X_test)
    for number, trace in enumerate(classifier.record(DIGITS.X_test)):
        seen = slice(0, len(trace.inputs))
        np.testing.assert_array_equal(recording.input_spikes[number, seen], trace.inputs.sum(axis=1))
        np.testing.assert_array_equal(recording.outputs[number, seen], trace.outputs)
        np.testing.assert_allclose(
            recording.potentials[number, seen], trace.potentials, rtol=0, atol=1e-9
        )


@pytest.mark.compiled
@pytest.mark.parametrize(
    "decoding", ["first-to-spike", pytest.param("rate", marks=pytest.mark.exhaustive)]
)
def test_operations_equal_a_count_of_the_recorded_spikes(decoding):
    """Must hold: the figure's operations are those of the spikes of the same test run."""
    classifier = fitted(decoding, device="cpp_standalone")
    tested = classifier.evaluate(DIGITS.X_test, DIGITS.y_test)
    traces = classifier.record(DIGITS.X_test)
    # Input spikes up to the decision, and the mean number of a neuron's own.
    counted = [trace.inputs.sum() + trace.outputs.sum() / 2 for trace in traces]
    assert tested["operations_per_class"] == np.mean(counted)
    assert measures(redraw(classifier, DIGITS.X_test).outcome(classifier.objective)) == {
        name: value for name, value in tested.items() if name != "accuracy"
    }


def test_decisions_at_a_deadline():
    # Two images, three steps, two outputs: one spike at step 2, and none.
    outputs = np.zeros((2, 3, 2), dtype=bool)
    outputs[0, 1:, 1] = True
    potentials = np.arange(12.0).reshape(2, 3, 2)
    recording = Redrawn(np.array([[5, 6, 7], [1, 2, 3]]), outputs, potentials)
    early = recording.outcome(FirstToSpike(), 1)
    assert early.steps.tolist() == [1, 1] and early.input_spikes.tolist() == [5, 1]
    assert not early.counts.any()
    whole = recording.outcome(FirstToSpike())
    assert whole.steps.tolist() == [2, 3] and whole.input_spikes.tolist() == [11, 6]
    assert whole.counts.tolist() == [[0, 1], [0, 0]]
    assert whole.potential_last.tolist() == [[2, 3], [10, 11]]
    rate = recording.outcome(Rate())
    assert rate.steps.tolist() == [3, 3] and rate.counts.tolist() == [[0, 2], [0, 0]]
    assert rate.potential_sum[0].tolist() == [6, 9]


def test_operations_by_layer_and_kind():
    architecture = glm.GLMClassifier("rate", n_steps=3, n_basis=2).settings.architecture
    network = architecture.network(5, 2, glm.CustomBasis([[1.0, 0.0], [0.5, 1.0]]))
    outcome = Outcome.from_rows([[3, 4, 1, 2, 0, 0, 0, 0], [3, 6, 0, 1, 0, 0, 0, 0]], 2)
    counts = complexity.operations(network, outcome)
    # 3 of 4 elements are not 0, in the basis and in the feedback basis.
    assert counts == {
        "encoding": {"additions": 15, "multiplications": 0, "random draws": 15},
        "synapses": {"additions": 5 * 2 * 2, "multiplications": 0, "random draws": 0},
        "filters": {"additions": 3 * 2 * 6, "multiplications": 3 * 2 * 6, "random draws": 0},
        "outputs": {"additions": 2 * 3 * 2 + 2 * 2, "multiplications": 0, "random draws": 6},
    }
    assert complexity.energy({"additions": 1, "multiplications": 0.9, "random draws": 2}) == (
        pytest.approx(1 + 3.7 + 2)
    )


def test_the_ann():
    result = AnnFit((5, 7), 50, 50, n_folds=2).run()
    assert result["accuracy"] > 0.9
    assert result["operations_per_class"] == 2 * 784
    assert result["operations"]["outputs"]["multiplications"] == 2 * 784


# ------------------------------------------------------------------ selection


def test_selection_is_that_of_grid_search():
    rates = (1e-2, 1e-4)
    protocol = replace(QUICK, n_train=20, n_folds=3, selection_epochs=1, learning_rates=rates)
    search = selection_fits(protocol, Design("rate", (5, 7), 3, 2), "runtime")
    results = {fit: fit.run() for folds in search.values() for fit in folds}
    ours = mean_accuracies(search, results)

    digits = glm.datasets.load_mnist((5, 7), 20, 0)
    classifier = next(iter(results)).classifier()
    grid = GridSearchCV(classifier, {"learning_rate": rates}, cv=3, n_jobs=1)
    grid.fit(digits.X_train, digits.y_train)
    np.testing.assert_allclose(list(ours.values()), grid.cv_results_["mean_test_score"])
    assert selected(ours) == grid.best_params_["learning_rate"]
    assert selected({1e-3: 0.5, 1e-4: 0.5}) == 1e-3


# ------------------------------------------------------------------ tables and claims


def test_interval_is_that_of_students_test():
    values = [0.1, 0.4, 0.35, 0.2]
    expected = ttest_1samp(values, 0).confidence_interval(0.95)
    np.testing.assert_allclose(tables.interval(values), [np.mean(values), *expected])


def made_up_rows():
    """Rows of two seeds, of decoders whose accuracy grows with T."""
    rows = []
    for settings in ("paper", "package"):
        for decoder, cost, gain in (("first-to-spike", 30, 0.01), ("rate", 50, 0.004)):
            for n_steps in (2, 8, 32):
                for seed in (0, 1):
                    accuracy = 0.96 + gain * math.log2(n_steps) / 2 + 0.001 * seed
                    operations = float(cost * n_steps)
                    rows.append(
                        {"settings": settings, "decoder": decoder, "classes": "5 7",
                         "n_steps": n_steps, "n_basis": n_steps, "seed": seed,
                         "learning_rate": 0.01, "accuracy": accuracy,
                         "mean_decision_step": 1.0, "silent_fraction": 0.0,
                         "operations_per_class": operations, "accuracy_by_spikes": 0.5,
                         "recounted_operations_per_class": operations}
                    )  # fmt: skip
    return rows


def test_complexity_ratio():
    rows = made_up_rows()
    found = claims.accuracy_vs_complexity_claims(rows)
    of_paper = [claim for claim in found if claim.get("settings") == "paper"]
    best, ratio, *growth = [claim for claim in of_paper if claim["ties"] == "by potential"]
    assert best["holds"] and best["n_steps"] == 32 and best["found"] == pytest.approx(0.9855)
    # 0.984 lies at log2 T = 4.7, where first-to-spike spends 30 T
    assert ratio["first_to_spike_operations"] == pytest.approx(30 * 2**4.7)
    # rate decoding ends at 0.9705, with 1600 operations
    assert ratio["rate_operations"] is None and ratio["found"] is None
    assert ratio["at_least"] == pytest.approx(1600 / (30 * 2**4.7))
    assert not ratio["holds"]
    assert [claim["holds"] for claim in growth] == [True]
    never = [c for c in found if c.get("ties") == "by spikes alone"]
    assert not any(claim["holds"] for claim in never if "reaches" in claim["claim"])
    assert found[-1]["holds"] and found[-1]["found"] == "24 of 24 fits"
    json.dumps(found, allow_nan=False)


def test_gap_is_taken_seed_by_seed():
    gaps = tables.gap_rows(made_up_rows())
    assert len(gaps) == 12
    largest = [row["accuracy"] for row in gaps if row["n_steps"] == 32]
    np.testing.assert_allclose(largest, 0.006 * 2.5)
    claim = claims.accuracy_vs_k_claims(made_up_rows())[0]
    assert claim["holds"] and claim["found"] == pytest.approx(0.003)


def test_figures_of_a_quick_run_say_so(tmp_path):
    for quick in (True, False):
        figure = figures.accuracy_vs_k(made_up_rows())
        figures.save(figure, tmp_path / "figure", quick)
        assert ("quick run" in [text.get_text() for text in figure.texts]) == quick
        assert (tmp_path / "figure.png").stat().st_size > 10_000
        assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")


# ------------------------------------------------------------------ the command

#: So small that NumPy can do it.
TINY = replace(
    QUICK,
    class_sets=((5, 7),),
    n_steps=2,
    k_grid=(1,),
    t_grid=(2,),
    n_train=4,
    n_test=6,
    n_epochs=1,
    n_seeds=2,
    n_folds=2,
    selection_epochs=1,
)


def test_a_figure_without_fits_says_so(tmp_path):
    lines = []
    done = reproduce(["basis"], TINY, tmp_path, local_workers(1), say=lines.append)
    assert done == {"targets": ["basis"], "output": str(tmp_path)}
    assert lines == [] and (tmp_path / "basis.png").stat().st_size > 10_000


def test_all_tables_and_figures(tmp_path):
    lines = []
    done = reproduce(
        TARGETS, TINY, tmp_path, local_workers(1), device="runtime", verbose=False, say=lines.append
    )
    assert done["architectures"] == 4 and done["fits"] == 4 * (2 * 2 + 2 * 2) + 1
    assert lines == ["quick: 32 fits of 4 architectures, 0.0 million presentations"]
    with open(tmp_path / "accuracy_vs_k.csv") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:13] == [
        "settings", "decoder", "classes", "n_steps", "n_basis", "seed", "learning_rate",
        "accuracy", "mean_decision_step", "silent_fraction", "operations_per_class",
        "accuracy_by_spikes", "recounted_operations_per_class",
    ]  # fmt: skip
    assert len(rows) == 2 * 2 * 2
    assert {float(row["learning_rate"]) for row in rows if row["settings"] == "package-averaged"} == {
        0.015
    }
    for row in rows:
        assert row["operations_per_class"] == row["recounted_operations_per_class"]
    with open(tmp_path / "accuracy_vs_complexity.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 2 + 1 and rows[-1]["decoder"] == "ann"
    names = ("basis", "accuracy_vs_k", "accuracy_vs_complexity", "decision_times", "deadlines",
             "operations")  # fmt: skip
    for name in names:
        assert (tmp_path / f"{name}.png").is_file() and (tmp_path / f"{name}.pdf").is_file()
    about = json.loads((tmp_path / "settings.json").read_text())
    assert about["protocol"] == json.loads(json.dumps(asdict(TINY)))
    assert about["versions"]["glmbrian"] == glm.__version__
    assert about["settings"]["paper"]["bias_init"] == "uniform"

    # Again: nothing is repeated, and nothing changes.
    before = {path: path.read_bytes() for path in tmp_path.glob("*.csv")}
    done = reproduce(TARGETS, TINY, tmp_path, local_workers(1), "runtime", False, lines.append)
    assert done["fits"] == 0
    assert {path: path.read_bytes() for path in before} == before

    # Another protocol leaves them alone.
    with pytest.raises(ValueError, match="output: .* holds results of another protocol"):
        reproduce(["basis"], FULL, tmp_path, local_workers(1), "runtime", False, lines.append)


def test_folders_of_version_0_1_keep_their_settings(tmp_path):
    def run():
        reproduce(["basis"], QUICK, tmp_path, local_workers(1), "runtime", False, print)

    run()
    path = tmp_path / "settings.json"
    about = json.loads(path.read_text())
    assert set(about["settings"]) == {"paper", "package-averaged"}
    defaults = glm.GLMClassifier().get_params()
    own = about["settings"]["package-averaged"]
    # The rate, the average and the bias (up to 32 steps) are today's defaults.
    fixed = {"average": 0.3, "bias_init": -5.0, "random_state": None}
    assert own == {**json.loads(json.dumps(defaults)), **fixed}
    for parameters in (about["settings"]["paper"], own):
        for later in ("average", "hidden", "learning_rate_schedule", "adversarial"):
            del parameters[later]
        parameters["learning_rate"] = 0.01
    about["settings"] = {"paper": about["settings"]["paper"], "package": {**own, "learning_rate": 0.01}}
    path.write_text(json.dumps(about))
    run()
    again = json.loads(path.read_text())["settings"]
    assert set(again) == {"paper", "package"} and again["package"]["learning_rate"] == 0.01
    about["settings"]["mine"] = own
    path.write_text(json.dumps(about))
    with pytest.raises(ValueError, match="holds results of another settings"):
        run()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--jobs", "0"], "--jobs must be an integer of at least 1, got 0"),
        (["--seeds", "1"], "--seeds must be an integer of at least 2, got 1"),
        (["--output", "taken"], "output: taken is not empty, and has no settings.json"),
        (["--output", "taken/file"], "--output: cannot write into the folder taken/file"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("kept")
    assert main(["reproduce", "basis", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("glmbrian reproduce: error: ") and message in error
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "taken"]


def test_a_missing_compiler_is_said_first(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("glmbrian.devices.cpp_standalone.find_compiler", lambda: None)
    assert main(["reproduce", "all", "--output", str(tmp_path / "new")]) == 2
    assert "a C++ compiler and make are needed" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_basis_on_the_command_line(tmp_path, capsys):
    arguments = ["--quick", "--json", "--jobs", "1", "--output", str(tmp_path / "new")]
    assert main(["reproduce", "basis", *arguments]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out.splitlines()[-1])["output"] == str(tmp_path / "new")
    assert "fits" not in captured.err
    assert (tmp_path / "new" / "basis.pdf").is_file()


def test_jobs_and_dask_exclude_each_other(capsys):
    with pytest.raises(SystemExit):
        main(["reproduce", "all", "--jobs", "2", "--dask", "tcp://127.0.0.1:1"])
    assert "not allowed with argument" in capsys.readouterr().err
