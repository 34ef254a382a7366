"""Exported projects: they train as `fit` does, refuse wrong settings, and detect any change."""

import os
import shutil
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import EXHAUSTIVE

import glmbrian as glm
from glmbrian.classifier.files import parameters_of_run
from glmbrian.core.activations import get_activation

pytestmark = pytest.mark.compiled
FEW = glm.datasets.load_mnist((5, 7), 20, 20)


#: More lags than Brian's code spells out.
BASIS = glm.CustomBasis(np.random.default_rng(0).random((64, 2)) / 8)


def make_classifier(**parameters):
    settings = dict(n_epochs=2, n_steps=66, basis=BASIS, random_state=3, verbose=False)
    return glm.GLMClassifier("rate", **{**settings, **parameters})


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project that was moved, and built and run without what this process and its package have."""
    written = tmp_path_factory.mktemp("exported") / "project"
    folder = tmp_path_factory.mktemp("moved") / "project"
    classifier = make_classifier()
    before = dict(vars(classifier))
    classifier.export(FEW.X_train, FEW.y_train, written)
    with pytest.raises(OSError, match="has not run yet"):
        glm.GLMClassifier.load(written)
    with pytest.raises(ValueError, match="directory must be new or empty"):
        classifier.export(FEW.X_train, FEW.y_train, written)
    assert vars(classifier) == before
    written.rename(folder)
    assert_self_contained(folder)
    build(folder)
    assert_reads_only(folder, (folder / "make.deps").read_text())
    return folder


def build(folder, **environment):
    """Run ``make run`` with nothing of this process's environment but the path of its programs."""
    path = os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin"])
    subprocess.run(
        ["make", "run"],
        cwd=folder,
        check=True,
        capture_output=True,
        env={"PATH": path, **environment},
    )


def assert_self_contained(folder):
    """No file names the package's folder or that of the Python environment."""
    package = Path(glm.__file__).resolve().parent
    python = Path(sys.prefix)
    for path in folder.rglob("*"):
        for place in (package, package.parent, python / "include", python / "lib"):
            assert not path.is_file() or os.fsencode(place) not in path.read_bytes(), (path, place)


def assert_reads_only(folder, dependencies):
    """What the compiler reads is in the project, as make's list of dependencies says."""
    files = dependencies.replace("\\\n", " ").split()
    read = [name for name in files if not name.endswith(":")]
    assert "objects.h" in read and "presentations.hpp" in read
    assert all((folder / name).resolve().is_relative_to(folder.resolve()) for name in read
               if not name.startswith(("/usr/", "/opt/")))  # fmt: skip


@pytest.fixture
def copy(project, tmp_path):
    """A copy of the project that tests may change; the program itself is not copied."""
    (tmp_path / "results").mkdir()
    shutil.copytree(project / "job", tmp_path / "job")
    shutil.copy(project / "classifier.npz", tmp_path)
    (tmp_path / "main").symlink_to(project / "main")
    return tmp_path


def run(folder, **options):
    return subprocess.run(["./main"], cwd=folder, capture_output=True, text=True, **options)


def change_setting(folder, name, value):
    path = folder / "job" / "settings.txt"
    lines = [line.split() for line in path.read_text().splitlines()]
    assert name in dict(lines)
    path.write_text("".join(f"{old} {value if old == name else kept}\n" for old, kept in lines))


def fit(classifier):
    return classifier.fit(FEW.X_train, FEW.y_train)


def assert_same(one, other):
    for name in ("weights_", "feedback_", "bias_", "history_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    assert one.n_presentations_ == other.n_presentations_ and one.streams_ == other.streams_


def parameters_of(classifier):
    return {**classifier.get_params(), "basis": classifier.basis.matrix.tolist()}


def test_it_trains_as_fit_does(project):
    exported, classifier = glm.GLMClassifier.load(project), fit(make_classifier())
    assert_same(exported, classifier)
    assert parameters_of(exported) == parameters_of(classifier)
    for one in (exported, classifier):
        one.partial_fit(FEW.X_train, FEW.y_train)
    assert_same(exported, classifier)
    np.testing.assert_array_equal(exported.predict(FEW.X_test), classifier.predict(FEW.X_test))


def test_changed_settings_are_read_back(copy):
    changed = dict(
        n_epochs=5,
        batch_size=4,
        target_period=2,
        target_start=3,
        weight_decay=0.25,
        learning_rate=0.05,
    )
    for name, value in {**changed, "n_averaged": 2}.items():
        change_setting(copy, name, value)
    assert run(copy).returncode == 0
    exported = glm.GLMClassifier.load(copy)
    classifier = fit(make_classifier(**changed))
    assert_same(exported, classifier)
    assert parameters_of(exported) == parameters_of(classifier)
    assert exported.n_presentations_ == 5 * 40
    # Settings that are changed after the run are not adopted.
    change_setting(copy, "n_epochs", 50)
    assert glm.GLMClassifier.load(copy).n_presentations_ == 5 * 40
    change_setting(copy, "n_epochs", 1)
    assert "n_averaged must be an integer from 0 to 1, got '2'" in run(copy).stderr
    change_setting(copy, "n_averaged", 1)
    change_setting(copy, "first_presentation", 200)
    change_setting(copy, "input_key", 7)
    assert run(copy).returncode == 0
    exported = glm.GLMClassifier.load(copy)
    assert exported.n_presentations_ == 240 and exported.streams_.train_inputs == 7


@pytest.mark.parametrize(
    "name, values, allowed",
    [
        (
            "n_epochs",
            ["0", "-1", "many", "1e3", "2.0", "+2", "0x2", "99999999999999999999"],
            "an integer from 1",
        ),
        ("batch_size", ["0", "-4", "2147483648"], "an integer from 1"),
        ("target_period", ["0", "x", "2147483648"], "an integer from 1"),
        ("target_start", ["-1", "x", "2147483648"], "an integer from 0"),
        ("first_presentation", ["-1", "9223372036854775807"], "an integer from 0"),
        ("n_items", ["0", "-40", "1000000000000"], "an integer from 1"),
        ("input_key", ["18446744073709551616", "-1", "1.5"], "an integer from 0"),
        ("order_key", ["18446744073709551616", "key"], "an integer from 0"),
        ("output_key", ["zero"], "an integer from 0"),
        ("weight_decay", ["-1", "nan", "inf", "0x1", "1,5", "1e400", "e"], "a number from 0"),
        ("learning_rate", ["0", "-1", "nan", "inf", "0x1", "1,5", "1,", ",", "e"], "a number above 0"),
        ("decoding", ["Rate", "RATE", "1"], "rate, which"),
        ("mode", ["Train", "training"], "train or test"),
        ("weighted", ["2", "yes"], "0 or 1"),
        ("data", ["byte", "Bytes"], "bytes or levels or trains"),
    ],
)
def test_settings_that_are_wrong(copy, name, values, allowed):
    for value in values:
        change_setting(copy, name, value)
        done = run(copy)
        assert done.returncode == 3, value
        assert done.stderr.startswith(f"glmbrian: job/settings.txt: {name} must be {allowed}")
        assert done.stderr.endswith(f"got '{value}'\n")


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda text: text.replace("n_epochs 2\n", ""), "lacks the setting n_epochs"),
        (lambda text: text + "n_epochs 3\n", "n_epochs is given twice"),
        (lambda text: text + "epochs 3\n", "epochs is not a setting"),
        (
            lambda text: text.replace("n_epochs 2", "n_epochs 2 3"),
            "each line must be a name and a value",
        ),
        (lambda text: text.replace("n_epochs 2", "n_epochs"), "each line must be a name and a value"),
        (lambda text: text.replace("rate", "first-to-spike"), "decoding must be rate, which"),
        (lambda text: "", "lacks the setting mode"),
        (lambda text: text.replace("n_items 40", "n_items 39"), "has the wrong size"),
        (lambda text: text.replace("weighted 0", "weighted 1"), "cannot read job/sample_weights.bin"),
        (
            lambda text: text.replace("schedule constant", "schedule function"),
            "cannot read job/rate_factors.bin",
        ),
        (
            lambda text: text.replace("schedule constant", "schedule cubic"),
            "learning_rate_schedule must be function or constant or linear, got 'cubic'",
        ),
        (lambda text: text.replace("optimizer sgd", "optimizer adam"), "optimizer must be sgd, which"),
        (
            lambda text: text.replace("settings 0.0", "settings 0.0,1"),
            "optimizer_settings must be 1 number",
        ),
        (lambda text: text.replace("continues 0", "continues 1"), "cannot read job/optimizer.bin"),
    ],
)
def test_settings_as_a_whole(copy, change, said):
    path = copy / "job" / "settings.txt"
    path.write_text(change(path.read_text()))
    done = run(copy)
    assert done.returncode == 3 and said in done.stderr


def test_averages_schedules_and_weights_that_were_changed_are_read_back(copy):
    exported = glm.GLMClassifier.load(copy)
    exported.set_params(average=0.5, learning_rate_schedule="linear", class_weight={5: 2.0})
    settings = dict(line.split() for line in (copy / "job" / "run.txt").read_text().splitlines())
    changed = {**settings, "n_averaged": "1"}  # half of two epochs
    exported.set_params(**parameters_of_run(exported.get_params(deep=False), changed, 2))
    assert (exported.average, exported.learning_rate_schedule) == (0.5, "constant")
    assert exported.class_weight is None
    change_setting(copy, "n_epochs", 5)
    for n_averaged, average in ((2, "auto"), (3, 0.6)):
        change_setting(copy, "n_averaged", n_averaged)
        assert run(copy).returncode == 0
        exported = glm.GLMClassifier.load(copy)
        assert exported.average == average
        assert_same(exported, fit(make_classifier(n_epochs=5, average=average)))


def test_a_schedule_by_name_is_for_any_number_of_epochs(copy):
    change_setting(copy, "learning_rate_schedule", "linear")
    for n_epochs in (2, 3):
        change_setting(copy, "n_epochs", n_epochs)
        change_setting(copy, "n_planned", 40 * n_epochs)
        assert run(copy).returncode == 0
        exported = glm.GLMClassifier.load(copy)
        assert exported.learning_rate_schedule == "linear"
        assert_same(exported, fit(make_classifier(n_epochs=n_epochs, learning_rate_schedule="linear")))


def test_a_function_as_a_schedule_is_for_a_number_of_epochs(copy):
    change_setting(copy, "learning_rate_schedule", "function")
    np.linspace(1, 0, 80).tofile(copy / "job" / "rate_factors.bin")
    assert run(copy).returncode == 0
    for wrong in (-0.5, np.nan, np.inf):
        np.append(np.linspace(1, 0, 79), wrong).tofile(copy / "job" / "rate_factors.bin")
        assert "rate_factors.bin must hold finite numbers of at least 0, got" in run(copy).stderr
    change_setting(copy, "n_epochs", 3)
    assert "to change n_epochs, n_items or batch_size, export again" in run(copy).stderr


@pytest.mark.parametrize(
    "name, values, said",
    [
        ("labels.bin", np.full(40, 2, np.int32), "labels.bin must hold integers from 0 to 1, got 2"),
        ("labels.bin", np.full(40, -1, np.int32), "labels.bin must hold integers from 0 to 1, got -1"),
        ("labels.bin", np.zeros(39, np.int32), "labels.bin has the wrong size"),
        ("data.bin", np.zeros(100, np.uint8), "data.bin has the wrong size"),
        ("data.bin", np.zeros(0, np.uint8), "n_items must be an integer from 1 to 0"),
        (
            "parameters.bin",
            np.full(784 * 4 + 6, np.inf),
            "parameters.bin must hold finite numbers, got inf",
        ),
        ("parameters.bin", np.zeros(7), "parameters.bin has the wrong size"),
    ],
)
def test_data_that_are_wrong(copy, name, values, said):
    values.tofile(copy / "job" / name)
    done = run(copy)
    assert done.returncode == 3 and said in done.stderr


def test_a_run_that_fails_or_is_killed_leaves_no_old_results(copy):
    glm.GLMClassifier.load(copy)
    change_setting(copy, "n_epochs", 10**9)
    with pytest.raises(subprocess.TimeoutExpired):
        run(copy, timeout=1)
    with pytest.raises(
        FileNotFoundError, match="path: cannot read .* has not run yet, or has not finished"
    ):
        glm.GLMClassifier.load(copy)
    change_setting(copy, "n_epochs", 2)
    assert run(copy).returncode == 0
    glm.GLMClassifier.load(copy)
    change_setting(copy, "n_epochs", "two")
    assert run(copy).returncode == 3
    with pytest.raises(FileNotFoundError, match="has not run yet, or has not finished"):
        glm.GLMClassifier.load(copy)


@pytest.mark.parametrize("name", ["trained.bin", "history.bin", "run.txt"])
def test_every_changed_byte_of_the_results_is_noticed(copy, name):
    path = copy / "job" / name
    whole = path.read_bytes()
    step = 1 if EXHAUSTIVE or len(whole) < 50 else len(whole) // 25
    for place in range(0, len(whole), step):
        data = bytearray(whole)
        data[place] ^= 1 << place % 8
        path.write_bytes(data)
        with pytest.raises(ValueError, match=f"{copy}.*`make run` again"):
            glm.GLMClassifier.load(copy)
    path.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match="`make run` again"):
        glm.GLMClassifier.load(copy)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="has not run yet"):
        glm.GLMClassifier.load(copy)


def lines_of_run(folder):
    text = (folder / "job" / "run.txt").read_text()
    return {name: value for name, value in map(str.split, text.splitlines()) if name != "checksum"}


def write_run(folder, lines):
    text = "".join(f"{name} {value}\n" for name, value in lines.items())
    checksum = zlib.crc32(text.encode())
    (folder / "job" / "run.txt").write_text(text + f"checksum {checksum}\n")


def test_projects_whose_learning_rate_is_in_a_file_of_its_own(copy):
    """Their programs name it after the settings."""
    expected = glm.GLMClassifier.load(copy)
    settings, run = copy / "job" / "settings.txt", lines_of_run(copy)
    settings.write_text(settings.read_text().replace("learning_rate 0.015\n", ""))
    np.array([0.015]).tofile(copy / "job" / "learning_rates.bin")
    run["learning_rate"] = f"{float(run.pop('learning_rate')):.17g}"
    write_run(copy, run)
    loaded = glm.GLMClassifier.load(copy)
    assert_same(loaded, expected)
    assert loaded.learning_rate == expected.learning_rate == 0.015


def test_parameters_that_are_not_finite(copy):
    """They come from a training that diverged."""
    trained = copy / "job" / "trained.bin"
    data = np.fromfile(trained)
    data[5] = np.nan
    data.tofile(trained)
    lines = lines_of_run(copy)
    lines["trained.bin_checksum"] = zlib.crc32(data.tobytes())
    write_run(copy, lines)
    with pytest.raises(ValueError, match=r"weights \(what the program has learned\) must be finite"):
        glm.GLMClassifier.load(copy)


def test_a_training_that_diverged_is_not_loaded(copy):
    """`fit` refuses it, too, and no file may hold such parameters."""
    change_setting(copy, "learning_rate", "1e250")
    assert run(copy).returncode == 0
    with pytest.raises(ValueError, match=r"training diverged .* learning_rate in job/settings.txt"):
        glm.GLMClassifier.load(copy)


def test_a_test_run_instead_of_a_training(copy):
    change_setting(copy, "mode", "test")
    assert run(copy).returncode == 0
    with pytest.raises((ValueError, OSError), match="has not run yet|did not train"):
        glm.GLMClassifier.load(copy)


def test_an_activation_that_no_file_holds_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    own = replace(get_activation("sigmoid"), name="own")
    monkeypatch.setattr("glmbrian.classifier.classifier.new_folder", None)
    with pytest.raises(ValueError, match="activation must be one of sigmoid, .* to be saved"):
        make_classifier(activation=own).export(FEW.X_train, FEW.y_train, tmp_path / "project")
