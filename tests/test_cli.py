"""The command line, as a user and as a script meets it."""

import json
import os

import pytest

from glmbrian.cli import main

FAST = "--n-train 20 --n-test 20 --n-epochs 2 --n-steps 3 --n-basis 2 --device runtime --quiet".split()
MEASURES = {
    "accuracy", "mean_decision_step", "operations_per_class", "silent_fraction",
    "presentations_per_second", "build_seconds", "run_seconds", "model",
}  # fmt: skip


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    from brian2 import prefs

    prefs.codegen.target = "numpy"
    monkeypatch.chdir(tmp_path)


def last_line(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_train_then_evaluate(capsys, tmp_path):
    assert main(["train", *FAST, "--json"]) == 0
    trained = last_line(capsys)
    assert MEASURES <= set(trained)
    assert (tmp_path / "glmbrian-output" / "training.png").stat().st_size > 10_000
    assert main(["evaluate", trained["model"], "--n-test", "20", "--device", "runtime", "--json"]) == 0
    evaluated = last_line(capsys)
    assert evaluated["accuracy"] == trained["accuracy"]
    assert evaluated["mean_decision_step"] == trained["mean_decision_step"]


def test_train_for_people(capsys):
    assert main(["train", *FAST, "--decoding", "rate", "--output", "here"]) == 0
    text = capsys.readouterr().out
    assert "test accuracy:" in text and "3.00 of 3" in text and "model.npz" in text


@pytest.mark.compiled
def test_export(capsys, tmp_path):
    import subprocess

    settings = "--n-train 10 --n-epochs 1 --n-steps 3 --n-basis 2".split()
    assert main(["export", "--device", "cpp_standalone", "project", *settings]) == 0
    assert "make -C project run" in capsys.readouterr().out
    assert main(["evaluate", "project", "--n-test", "10"]) == 2
    assert "has not run yet" in capsys.readouterr().err
    subprocess.run(["make", "-C", "project", "run"], check=True, capture_output=True)
    assert main(["evaluate", "project", "--n-test", "10", "--device", "runtime", "--json"]) == 0
    assert 0 <= last_line(capsys)["accuracy"] <= 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--classes", "5", "x"], "--classes must be digits"),
        (["--classes", "5", "12"], "classes"),
        (["--n-train", "5000"], "n_train"),
        (["--n-steps", "0"], "n_steps must be an integer of at least 1"),
        (["--learning-rate", "-1"], "learning_rate must be"),
        (["--data-dir", "nowhere"], "nowhere"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(arguments, message, capsys, tmp_path):
    assert main(["train", "--quiet", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("glmbrian train: error: ") and message in error
    assert error.count("\n") == 1
    assert list(tmp_path.rglob("*.npz")) == []


def test_unwritable_output(capsys, tmp_path):
    (tmp_path / "file").write_text("kept")
    assert main(["train", *FAST, "--output", "file/folder"]) == 2
    assert "--output: cannot write into the folder" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "kept"


def test_auto_says_that_there_is_no_compiler(capsys, monkeypatch):
    monkeypatch.setattr("glmbrian.cli.find_compiler", lambda: None)
    arguments = [argument for argument in FAST if argument not in ("--device", "runtime")]
    assert main(["train", *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert "no C++ compiler was found" in captured.err
    assert json.loads(captured.out.splitlines()[-1])["device"] == "runtime"


def test_module_entry_point():
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-m", "glmbrian", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("glmbrian ")
    assert os.linesep in done.stdout
