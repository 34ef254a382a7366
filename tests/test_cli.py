"""The command line, as a user and as a script meets it."""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

import glmbrian as glm
from glmbrian import cli
from glmbrian.cli import main
from glmbrian.devices import get_device
from glmbrian.support import cache

FAST = [
    "--n-train",
    "20",
    "--n-test",
    "20",
    "--n-epochs",
    "2",
    "--n-steps",
    "3",
    "--n-basis",
    "2",
    "--device",
    "runtime",
    "--quiet",
]
MEASURES = {
    "accuracy", "mean_decision_step", "operations_per_class", "silent_fraction",
    "presentations_per_second", "build_seconds", "run_seconds", "model",
}  # fmt: skip


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def last_line(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_train_then_evaluate(capsys, tmp_path):
    assert main(["train", *FAST, "--json"]) == 0
    trained = last_line(capsys)
    assert set(trained) >= MEASURES
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
    settings = ["--n-train", "10", "--n-epochs", "1", "--n-steps", "3", "--n-basis", "2"]
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
        (["--classes", "5"], "--classes must be at least 2 digits or 'all', got 5"),
        (["--n-train", "0"], "--n-train must be an integer of at least 1, got 0"),
        (["--n-test", "0"], "--n-test must be an integer of at least 1, got 0"),
        (["--n-test", "-1"], "--n-test must be an integer of at least 1, got -1"),
        (["--data-dir", "nowhere"], "nowhere"),
        (["--full"], "--full needs --data-dir"),
        (["--full", "--data-dir", ".", "--n-train", "3"], "leave out --n-train and --n-test"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(arguments, message, capsys, tmp_path, no_work):
    assert main(["train", "--quiet", "--output", "new/folder", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("glmbrian train: error: ") and message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def no_work(monkeypatch):
    def train(*arguments):
        raise AssertionError("trained before the check")

    for device in ("runtime", "cpp_standalone"):
        monkeypatch.setattr(type(get_device(device)), "train", staticmethod(train))


@pytest.mark.parametrize("name", ["model.npz", "training.png"])
def test_a_folder_in_the_place_of_an_output(name, capsys, tmp_path, no_work):
    (tmp_path / "here" / name).mkdir(parents=True)
    assert main(["train", *FAST, "--output", "here"]) == 2
    assert (
        f"--output: here/{name} must be a file or not exist, but is a folder" in capsys.readouterr().err
    )


def test_a_training_that_fails_leaves_no_folder(capsys, tmp_path, monkeypatch):
    def train(*arguments):
        raise RuntimeError("no luck")

    monkeypatch.setattr("glmbrian.devices.runtime.Runtime.train", staticmethod(train))
    assert main(["train", *FAST, "--output", "new/folder"]) == 2
    assert "no luck" in capsys.readouterr().err and list(tmp_path.iterdir()) == []


def test_a_model_outlives_a_failing_test(tmp_path, monkeypatch):
    def test(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("glmbrian.devices.runtime.Runtime.test", staticmethod(test))
    assert main(["train", *FAST]) == 130
    assert glm.GLMClassifier.load(tmp_path / "glmbrian-output" / "model.npz").classes_.tolist() == [
        5,
        7,
    ]


def test_unwritable_output(capsys, tmp_path):
    (tmp_path / "file").write_text("kept")
    assert main(["train", *FAST, "--output", "file/folder"]) == 2
    assert "--output: cannot write into the folder" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "kept"


def test_auto_says_that_there_is_no_compiler(capsys, monkeypatch):
    monkeypatch.setattr("glmbrian.devices.cpp_standalone.find_compiler", lambda: None)
    arguments = [argument for argument in FAST if argument not in ("--device", "runtime")]
    assert main(["train", *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert "no C++ compiler was found" in captured.err
    assert json.loads(captured.out.splitlines()[-1])["device"] == "runtime"


def test_module_entry_point():
    done = subprocess.run(
        [sys.executable, "-m", "glmbrian", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.startswith("glmbrian ")
    assert os.linesep in done.stdout


def save_model(path, labels, n_inputs=784, **parameters):
    random = np.random.default_rng(0)
    X = random.integers(0, 256, (4, n_inputs)).astype(np.uint8)
    settings = dict(n_steps=2, n_basis=1, n_epochs=1, device="runtime", random_state=0, verbose=False)
    glm.GLMClassifier(**{**settings, **parameters}).fit(X, labels).save(path)


@pytest.mark.parametrize(
    "labels, arguments, message",
    [
        (
            [5, 7] * 2,
            ["--classes", "3", "4"],
            "--classes must be among the classes of the model, 5 7, got 3 4",
        ),
        (
            [5, 7] * 2,
            ["--classes", "all"],
            "--classes must be among the classes of the model, 5 7, got 0 1",
        ),
        ([5, 7] * 2, ["--n-test", "0"], "--n-test must be an integer of at least 1"),
        (["a", "b"] * 2, [], "model: its classes must be digits from 0 to 9, but are ['a', 'b']"),
    ],
)
def test_evaluate_checks_that_classes_match(labels, arguments, message, capsys):
    save_model("model.npz", labels)
    assert main(["evaluate", "model.npz", "--device", "runtime", *arguments]) == 2
    assert f"glmbrian evaluate: error: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["evaluate", "attack"])
@pytest.mark.parametrize("labels, n_inputs", [(["a", "b"] * 2, 784), ([5, 7] * 2, 10)])
def test_models_of_other_data(command, labels, n_inputs, capsys):
    save_model("model.npz", labels, n_inputs)
    assert main([command, "model.npz", "--device", "runtime", "--n-test", "1"]) == 2
    error = capsys.readouterr().err
    assert f"`glmbrian {command}` tests on MNIST digits" in error
    assert "glmbrian.GLMClassifier.load('model.npz').evaluate(X, y)" in error


@pytest.mark.parametrize("labels", [[5, 7] * 2, [5.0, 7.0] * 2])
def test_evaluate_with_some_of_the_classes(labels, capsys):
    save_model("model.npz", labels)
    arguments = ["--device", "runtime", "--quiet", "--n-test", "3"]
    assert main(["evaluate", "model.npz", *arguments, "--classes", "7"]) == 0
    assert main(["evaluate", "model.npz", *arguments]) == 0


def test_attack(capsys, tmp_path):
    digits = glm.datasets.load_mnist((5, 7), 50, 1)
    classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=4, device="runtime",
                                   random_state=0, verbose=False)  # fmt: skip
    model = tmp_path / "model.npz"
    classifier.fit(digits.X_train, digits.y_train).save(model)
    arguments = ["attack", str(model), "--n-test", "30", "--device", "runtime"]
    assert main([*arguments, "--budget", "8", "--certify", "--json"]) == 0
    found = last_line(capsys)
    assert found["attacked_accuracy"] < found["random_accuracy"] and found["presentations"] == 60
    assert found["certified_accuracy"] <= found["accuracy"] + 0.2
    assert main([*arguments, "--kind", "shift"]) == 2
    assert "kind must be one of 'add', 'remove', 'flip'" in capsys.readouterr().err


def test_certify_refuses_hidden_layers_before_the_attack(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("glmbrian.robustness.attack", None)
    digits = glm.datasets.load_mnist((5, 7), 2, 1)
    classifier = glm.GLMClassifier(n_steps=3, n_basis=2, n_epochs=1, device="runtime", hidden=(4, 3),
                                   random_state=0, verbose=False)  # fmt: skip
    classifier.fit(digits.X_train, digits.y_train).save(tmp_path / "model.npz")
    arguments = ["attack", str(tmp_path / "model.npz"), "--n-test", "2", "--device", "runtime"]
    assert main([*arguments, "--certify"]) == 2
    assert "--certify needs a model without hidden layers" in capsys.readouterr().err


def test_evaluate_names_the_model(capsys):
    assert main(["evaluate", "nothere"]) == 2
    assert "model: path: cannot read nothere: No such file" in capsys.readouterr().err


@pytest.mark.parametrize("directory", ["/proc/foo", "file/x", "full"])
def test_export_names_the_directory(directory, capsys, tmp_path):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kept").touch()
    settings = ["--n-train", "10", "--n-epochs", "1", "--n-steps", "3", "--n-basis", "2"]
    assert main(["export", directory, *settings]) == 2
    error = capsys.readouterr().err
    assert error.startswith("glmbrian export: error: directory") and directory in error
    assert (tmp_path / "file").read_text() == "kept" and (tmp_path / "full" / "kept").exists()


@pytest.mark.parametrize("arguments", [["--n-train", "0"], ["--classes", "5"], ["--n-steps", "0"]])
def test_a_bad_export_leaves_nothing(arguments, capsys, tmp_path):
    assert main(["export", "new", *arguments]) == 2
    assert arguments[0].strip("-").replace("-", "_") in capsys.readouterr().err.replace("-", "_")
    assert list(tmp_path.iterdir()) == []


def test_export_hints_can_be_pasted(capsys, monkeypatch):
    def export(network, parameters, inputs, labels, training, folder):
        (folder / "device").write_text(str(network.gpu))

    monkeypatch.setattr("glmbrian.devices.genn.GeNN.export", staticmethod(export))
    settings = [
        "--n-train",
        "10",
        "--n-steps",
        "3",
        "--n-basis",
        "2",
        "--device",
        "genn",
        "--no-gpu",
        "--json",
    ]
    assert main(["export", "my proj", *settings]) == 0
    hints = last_line(capsys)
    assert shlex.split(hints["build and run"]) == ["make", "-C", "my proj", "run"]
    assert shlex.split(hints["then test"]) == ["glmbrian", "evaluate", "my proj"]
    assert Path("my proj/device").read_text() == "False"


@pytest.mark.parametrize("device", ["genn", "cpp_standalone"])
def test_evaluate_a_folder_whose_program_has_run(device, capsys, monkeypatch):
    """Also where what generated the program, such as brian2genn, is not there."""

    def export(network, parameters, inputs, labels, training, folder):
        (folder / "job").mkdir()
        theta = (parameters.weights, parameters.feedback, parameters.bias)
        results = {
            "trained.bin": np.concatenate([np.ravel(part) for part in theta]).tobytes(),
            "history.bin": np.zeros(training.n_epochs).tobytes(),
        }
        run = "mode train\ndecoding first-to-spike\nn_epochs 1\nbatch_size 1\ntarget_period 4\n"
        run += "first_presentation 0\nn_items 20\ninput_key 1\norder_key 2\nlearning_rate 0.01\n"
        for name, data in results.items():
            (folder / "job" / name).write_bytes(data)
            run += f"{name}_size {len(data)}\n{name}_checksum {zlib.crc32(data)}\n"
        run += f"checksum {zlib.crc32(run.encode())}\n"
        (folder / "job" / "run.txt").write_text(run)

    monkeypatch.setattr(type(get_device(device)), "export", staticmethod(export))
    settings = ["--n-train", "10", "--n-epochs", "1", "--n-steps", "3", "--n-basis", "2"]
    assert main(["export", "project", "--device", device, *settings]) == 0
    assert glm.GLMClassifier.load("project").device == device
    arguments = ["--device", "runtime", "--n-test", "3", "--quiet", "--no-gpu"]
    assert main(["evaluate", "project", *arguments]) == 0
    assert "test accuracy:" in capsys.readouterr().out


@pytest.mark.parametrize("option, gpu", [([], None), (["--gpu"], True), (["--no-gpu"], False)])
def test_gpu_option(option, gpu, monkeypatch, capsys):
    seen = []

    def run(network, *arguments):
        seen.append(network.gpu)
        raise RuntimeError("seen")

    monkeypatch.setattr("glmbrian.devices.genn.GeNN.train", staticmethod(run))
    monkeypatch.setattr("glmbrian.devices.genn.GeNN.test", staticmethod(run))
    save_model("model.npz", [5, 7] * 2, gpu=gpu)
    genn = [*FAST, "--device", "genn"]
    assert main(["train", *genn, *option]) == 2
    assert main(["evaluate", "model.npz", "--device", "genn", "--n-test", "2"]) == 2
    save_model("model.npz", [5, 7] * 2)
    assert main(["evaluate", "model.npz", "--device", "genn", "--n-test", "2", *option]) == 2
    assert seen == [gpu] * 3


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["train", "--bias-init", "abc"], "--bias-init: must be a number or 'uniform', got 'abc'"),
        (["export", "new", "--device", "runtime"], "'cpp_standalone'"),
        (
            ["train", "--adversarial", "few"],
            "must be BUDGET[:KIND[:FRACTION]], such as 5 or 5:flip:0.5",
        ),
        (["train", "--adversarial", "5:swap"], "['kind'] must be one of 'add', 'remove', 'flip'"),
        (["train", "--adversarial", "5:add:2"], "['fraction'] must be a finite number above 0"),
        (["train", "--adversarial", "5:add:1:x"], "got '5:add:1:x'"),
    ],
)
def test_arguments_of_the_wrong_form(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err


def test_bias_init():
    for text, bias in (("uniform", "uniform"), ("auto", "auto"), ("-2.5", -2.5)):
        assert main(["train", *FAST, "--bias-init", text]) == 0
        assert glm.GLMClassifier.load("glmbrian-output/model.npz").bias_init == bias


def test_adversarial():
    for text, settings in (
        ("5", {"budget": 5}),
        ("3:add", {"budget": 3, "kind": "add"}),
        ("3:remove:0.5", {"budget": 3, "kind": "remove", "fraction": 0.5}),
    ):
        assert main(["train", *FAST, "--adversarial", text]) == 0
        assert glm.GLMClassifier.load("glmbrian-output/model.npz").adversarial == settings


def test_interrupted_while_it_starts(monkeypatch, capsys):
    def import_slowly():
        raise KeyboardInterrupt

    monkeypatch.setattr("glmbrian.cli.make_parser", import_slowly)
    assert main(["train"]) == 130
    assert capsys.readouterr().err == "glmbrian: stopped\n"
    # what takes long is not imported before that is caught
    code = "import glmbrian.cli, sys; sys.exit(bool({'brian2', 'sklearn'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_clearing_the_cache_tells_what_it_could_not_remove(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GLMBRIAN_CACHE_DIR", str(tmp_path))
    free, used = map(cache.content_key, "ab")
    with cache.find_or_build(free, lambda folder: None):
        pass
    with cache.find_or_build(used, lambda folder: None):
        assert main(["cache", "--json"]) == 0
        assert last_line(capsys)["programs"] == 2
        assert main(["cache", "--clear"]) == 0
        told = capsys.readouterr()
    assert f"could not remove {used}: it is in use" in told.err
    assert "programs removed:       1" in told.out and "programs not removed:   1" in told.out
    (tmp_path / "programs").rename(tmp_path / "elsewhere")
    (tmp_path / "programs").symlink_to("elsewhere")
    assert main(["cache", "--clear"]) == 2
    assert "programs must be a folder, but is a link" in capsys.readouterr().err
    assert (tmp_path / "elsewhere" / used).exists()


COMMANDS = ("train", "evaluate", "export", "reproduce", "cache")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_every_default(command):
    (options,) = [
        action.choices[command] for action in cli.make_parser()._actions if hasattr(action, "choices")
        and isinstance(action.choices, dict)
    ]  # fmt: skip
    for action in options._actions:
        takes_a_value = action.option_strings and action.nargs != 0 and action.help != argparse.SUPPRESS
        if takes_a_value and "--dask" not in action.option_strings:
            assert "(default: " in action.help, action.option_strings
    assert "(default: " in options.format_help() or command == "cache"


def test_help_has_the_defaults_of_the_classifier(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")  # no lines are broken
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    defaults = glm.GLMClassifier().get_params()
    for name in ("decoding", "n_steps", "learning_rate", "bias_init", "on_silence"):
        option = "--" + name.replace("_", "-")
        assert f"(default: {defaults[name]})" in text.rpartition(f" {option} ")[2].partition(" --")[0]


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04"])
@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "file"],
        ["evaluate", "file/model.npz"],
        ["train", "--device", "runtime", "--data-dir", "file"],
        ["train", "--device", "runtime", "--data-dir", "folder"],
        ["train", "--device", "runtime", "--output", "file"],
        ["export", "file"],
        ["export", "new", "--data-dir", "folder"],
        ["reproduce", "basis", "--output", "file"],
        ["reproduce", "basis", "--output", "folder"],
    ],
    ids=" ".join,
)
def test_errors_of_bad_files_are_one_line(command, content, capsys, tmp_path):
    (tmp_path / "file").write_bytes(content)
    (tmp_path / "folder").mkdir()
    for name in ("train-images", "t10k-images", "train-labels", "t10k-labels", "settings.json"):
        (tmp_path / "folder" / f"{name}-idx3-ubyte").write_bytes(content)
        (tmp_path / "folder" / f"{name}-idx1-ubyte").write_bytes(content)
    (tmp_path / "folder" / "settings.json").write_bytes(content)
    assert main(command) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"glmbrian {command[0]}: error: ") and error.count("\n") == 1
    assert (tmp_path / "file").read_bytes() == content and not (tmp_path / "new").exists()


def test_sigterm_lets_what_was_begun_be_cleaned_up(monkeypatch, capsys):
    cleaned, before = [], signal.getsignal(signal.SIGTERM)

    def work():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(100)
        except Exception:
            raise AssertionError("taken for an error of the work") from None
        finally:
            cleaned.append(True)

    monkeypatch.setattr("glmbrian.cli.make_parser", work)
    assert main(["train"]) == 143
    assert capsys.readouterr().err == "glmbrian: stopped by SIGTERM\n"
    assert cleaned and signal.getsignal(signal.SIGTERM) is before
