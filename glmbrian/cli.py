"""The command line: ``glmbrian train | evaluate | attack | export | reproduce | benchmark | cache``.

Slow imports are inside functions, where `main` handles their errors and interruptions.
"""

import argparse
import contextlib
import gc
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

#: Images per class.
_DEFAULT_IMAGES = 1000


class _Terminated(BaseException):
    """SIGTERM was received. Not a KeyboardInterrupt, which some code in between catches."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    name = "glmbrian"
    with _termination():
        try:
            options = make_parser().parse_args(arguments)
            name += f" {options.command}"
            result = options.run(options)
            # With --json, the text for people goes to standard error, like logs.
            _show(result, sys.stderr if options.json else sys.stdout)
            if options.json:
                print(json.dumps(result), flush=True)
            return 0
        except (ValueError, TypeError, OSError, RuntimeError, subprocess.SubprocessError) as error:
            print(f"{name}: error: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            return _stopped(f"{name}: stopped", signal.SIGINT)
        except _Terminated:
            return _stopped(f"{name}: stopped by SIGTERM", signal.SIGTERM)


def _stopped(text, number):
    print(text, file=sys.stderr)
    # Otherwise the interpreter would collect garbage for a second or more before it exits.
    gc.freeze()
    return 128 + number


@contextlib.contextmanager
def _termination():
    """Make SIGTERM end a command like Ctrl-C, so no files or processes are left behind."""

    def terminate(*arguments):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second signal ends the process at once
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def make_parser() -> argparse.ArgumentParser:
    from ._version import __version__
    from .devices import DEVICES, exporting_devices

    parser = argparse.ArgumentParser(
        prog="glmbrian", description="Spiking GLM neurons for Brian 2: train and test on MNIST digits."
    )
    parser.add_argument("--version", action="version", version=f"glmbrian {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    train = commands.add_parser("train", help="train and test a classifier, and draw pictures")
    _add_data_options(train)
    _add_classifier_options(train)
    train.add_argument(
        "--device",
        choices=("auto", *DEVICES),
        default="auto",
        help="auto: cpp_standalone if there is a C++ compiler, else runtime (default: %(default)s)",
    )
    train.add_argument(
        "--output",
        type=Path,
        default=Path("glmbrian-output"),
        metavar="DIR",
        help="folder for model.npz and training.png (default: %(default)s)",
    )
    train.set_defaults(run=_train)

    evaluate = commands.add_parser("evaluate", help="test a trained model")
    evaluate.add_argument("model", type=Path, help="model.npz, or an exported folder that has run")
    _add_data_options(evaluate, classes=None, sizes=("n_test",))
    evaluate.add_argument(
        "--device",
        choices=("auto", *DEVICES),
        default="auto",
        help="as for train; may differ from the device of training (default: %(default)s)",
    )
    evaluate.set_defaults(run=_evaluate)

    attack = commands.add_parser(
        "attack", help="change the input spikes that hurt a trained model most"
    )
    attack.add_argument("model", type=Path, help="model.npz, or an exported folder that has run")
    _add_data_options(attack, classes=None, sizes=("n_test",))
    _add_attack_options(attack)
    attack.add_argument(
        "--device",
        choices=("auto", *DEVICES),
        default="auto",
        help="where to test; as for evaluate (default: %(default)s)",
    )
    attack.set_defaults(run=_attack)

    export = commands.add_parser("export", help="write a stand-alone project that trains")
    export.add_argument("directory", type=Path, metavar="DIR", help="a new or empty folder")
    _add_data_options(export, sizes=("n_train",))
    _add_classifier_options(export)
    export.add_argument(
        "--device",
        choices=exporting_devices(),
        default="cpp_standalone",
        help="the device that the project is for (default: %(default)s)",
    )
    export.set_defaults(run=_export)

    reproduce = commands.add_parser("reproduce", help="run the paper's experiments")
    _add_reproduce_options(reproduce)
    reproduce.set_defaults(run=_reproduce)

    # Accepts any options, since it had some in version 0.1.
    benchmark = commands.add_parser(
        "benchmark", prefix_chars="+", help="say how to compare speed with other implementations"
    )
    benchmark.add_argument("options", nargs="*", help=argparse.SUPPRESS)
    benchmark.set_defaults(run=_benchmark, json=False)

    cache = commands.add_parser("cache", help="show the size of the compiled programs, or remove them")
    cache.add_argument("--clear", action="store_true", help="remove all except those in use")
    cache.set_defaults(run=_cache)

    for command in (train, evaluate, attack, export):
        command.add_argument(
            "--gpu",
            action=argparse.BooleanOptionalAction,
            help="with --device genn: use a GPU (default: if CUDA is found)",
        )
    for command in (train, evaluate, attack, export, reproduce, cache):
        command.add_argument(
            "--json",
            action="store_true",
            help="print one JSON object as the last line of standard output",
        )
    for command in (train, evaluate, attack, export, reproduce):
        command.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser  # fmt: skip


def _add_data_options(command, classes=(5, 7), sizes=("n_train", "n_test")):
    default = "the classes of the model" if classes is None else " ".join(map(str, classes))
    command.add_argument(
        "--classes",
        nargs="+",
        default=classes,
        metavar="DIGIT",
        help=f"digits, or 'all' (default: {default})",
    )
    for name, kind in (("n_train", "training"), ("n_test", "test")):
        # The other option is accepted, since scripts may pass it, but has no effect.
        text = f"{kind} images per class (default: %(default)s)" if name in sizes else argparse.SUPPRESS
        command.add_argument(
            "--" + name.replace("_", "-"), type=int, default=_DEFAULT_IMAGES, metavar="N", help=text
        )
    command.add_argument("--data-dir", type=Path, metavar="DIR",
                         help="folder with IDX files of MNIST (default: the images that ship "
                         "with glmbrian)")  # fmt: skip
    command.add_argument(
        "--full", action="store_true", help="all images in --data-dir, however many per class"
    )


def _add_classifier_options(command):
    """Add the parameters of `GLMClassifier`, under the same names."""
    from .classifier.classifier import GLMClassifier
    from .core.activations import BUILT_IN_ACTIVATIONS
    from .core.decisions import ON_SILENCE, ON_TIE
    from .core.objectives import OBJECTIVES
    from .core.schedules import SCHEDULES

    options = {
        "decoding": dict(choices=tuple(OBJECTIVES), help="training rule, and rule of decision"),
        "n_steps": dict(type=int, metavar="T", help="steps per presentation"),
        "n_basis": dict(type=int, metavar="K", help="basis functions per kernel"),
        "window": dict(type=int, metavar="LAGS", help="lags per kernel"),
        "learning_rate": dict(type=float, metavar="RATE", help="step size of training"),
        "n_epochs": dict(type=int, metavar="N", help="passes through the training images"),
        "batch_size": dict(type=int, metavar="N", help="images per update"),
        "weight_scale": dict(type=float, metavar="SCALE",
                             help="initial weights are uniform within +-SCALE"),
        "bias_init": dict(type=_bias, metavar="BIAS",
                          help="initial biases: a number, 'auto' or 'uniform'"),
        "activation": dict(choices=BUILT_IN_ACTIVATIONS, help="spike probability as a function of the potential"),
        "target_period": dict(type=int, metavar="N", help="period of the desired spike train (rate)"),
        "target_start": dict(type=int, metavar="STEP", help="step of the first desired spike (rate)"),
        "on_silence": dict(choices=ON_SILENCE, help="decision without any output spike"),
        "on_tie": dict(choices=ON_TIE, help="decision between equal outputs"),
        "hidden": dict(type=int, nargs="*", metavar="N", help="sizes of hidden layers, from the inputs on"),
        "learning_rate_schedule": dict(choices=tuple(SCHEDULES), help="how the learning rate changes"),
        "average": dict(type=_average, metavar="FRACTION",
                        help="fraction of the epochs, the last ones, over which parameters are averaged, "
                        "or 'auto': 0.3, or 0 with --early-stopping"),
        "weight_decay": dict(type=float, metavar="RATE", help="how fast weights decay to 0"),
        "early_stopping": dict(action=argparse.BooleanOptionalAction, default=None,
                               help="hold out images, and stop when they are decided no better"),
        "validation_fraction": dict(type=float, metavar="FRACTION", help="fraction of images to hold out"),
        "adversarial": dict(type=_adversarial, metavar="BUDGET[:KIND[:FRACTION]]",
                            help="train after the worst spikes of a fraction of the images have been "
                            "changed (add, remove or flip), at most BUDGET in each"),
        "random_state": dict(type=int, metavar="SEED", help="seed"),
    }  # fmt: skip
    defaults = {
        **GLMClassifier().get_params(),
        "window": "the larger of T and K",
        "hidden": "none",
        "adversarial": "none",
        "target_start": "the target period",
        "random_state": 0,
    }
    command.add_argument("--paper-settings", action="store_true",
                         help="the paper's learning rate, epochs and initialization, without averaging, unless given")  # fmt: skip
    for name, settings in options.items():
        settings["help"] += f" (default: {defaults[name]})"
        names = ["--schedule"] if name == "learning_rate_schedule" else []
        command.add_argument(*names, "--" + name.replace("_", "-"), dest=name, **settings)


def _add_attack_options(command):
    command.add_argument(
        "--budget", type=int, default=10, metavar="N",
        help="the most spikes to change in each presentation (default: %(default)s)",
    )  # fmt: skip
    # The names are checked by `robustness.attack`, whose import takes seconds.
    command.add_argument("--kind", default="flip", help="add, remove or flip (default: %(default)s)")
    command.add_argument("--method", default="greedy", help="greedy or iterated (default: %(default)s)")
    command.add_argument(
        "--loss", default="likelihood", help="likelihood or margin (default: %(default)s)"
    )
    command.add_argument(
        "--certify", action="store_true", help="also print the accuracy that no change can undo"
    )


def _add_reproduce_options(command):
    from .reproduce import FULL, QUICK, TARGETS

    command.add_argument(
        "figure", choices=(*TARGETS, "all"), help="figure 3, 4 or 5 of the paper, or all of them"
    )
    command.add_argument("--quick", action="store_true", help="fewer images, epochs, seeds and points")
    command.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help=f"fits per point (default: {FULL.n_seeds}, quick {QUICK.n_seeds})",
    )
    workers = command.add_mutually_exclusive_group()
    workers.add_argument(
        "--jobs", type=int, metavar="N", help="parallel fits on this machine (default: one per core)"
    )
    workers.add_argument(
        "--dask", metavar="ADDRESS", help="run on the Dask cluster with this scheduler, tcp://..."
    )
    command.add_argument("--output", type=Path, metavar="DIR",
                         help="folder for tables and figures; if it holds results of the same "
                         "settings, only missing results are computed (default: glmbrian-results, quick "
                         "glmbrian-results-quick)")  # fmt: skip


def _average(text):
    return _number_or(text, "auto")


def _bias(text):
    return text if text == "auto" else _number_or(text, "uniform")


def _number_or(text, word):
    try:
        return text if text == word else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number or {word!r}, got {text!r}") from None


def _adversarial(text):
    from .core.adversarial import get_adversarial

    budget, *rest = text.split(":", 2)
    try:
        settings = {"budget": int(budget), **dict(zip(("kind", "fraction"), rest))}
        if "fraction" in settings:
            settings["fraction"] = float(settings["fraction"])
        get_adversarial(settings)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"must be BUDGET[:KIND[:FRACTION]], such as 5 or 5:flip:0.5, got {text!r} ({error})"
        ) from None
    return settings


# ------------------------------------------------------------------ the commands


def _train(options):
    _check_counts(options, "n_train", "n_test")
    digits = _digits(options.classes, least=2)
    data = _load_data(options, digits, options.n_train, options.n_test)
    classifier = _classifier(options, _device(options.device))
    model, figure = options.output / "model.npz", options.output / "training.png"
    _require_writable(options.output, model, figure)
    classifier.fit(data.X_train, data.y_train)
    training = classifier.timing_
    options.output.mkdir(parents=True, exist_ok=True)
    classifier.save(model)
    tested = classifier.evaluate(data.X_test, data.y_test)
    from . import plotting

    plotting.training_report(classifier, data.X_test, data.y_test, figure)
    return {
        **tested,
        "presentations_per_second": training["presentations"] / training["run_seconds"],
        "build_seconds": training["build_seconds"],
        "run_seconds": training["run_seconds"],
        "peak_memory": training["peak_memory"],
        "n_steps": classifier.n_steps,
        "device": classifier.device,
        "model": str(model),
        "figure": str(figure),
    }


def _evaluate(options):
    classifier, data = _load_model(options)
    tested = classifier.evaluate(data.X_test, data.y_test)
    timing = classifier.timing_
    return {
        **tested,
        "presentations_per_second": timing["presentations"] / timing["run_seconds"],
        "build_seconds": timing["build_seconds"],
        "run_seconds": timing["run_seconds"],
        "n_steps": classifier.n_steps,
        "device": classifier.device,
        "model": str(options.model),
    }


def _attack(options):
    from .robustness import attack, certified_accuracy, random_change

    classifier, data = _load_model(options)
    if options.certify and classifier.hidden_layers_:
        sizes = _listed(len(layer.bias) for layer in classifier.hidden_layers_)
        raise ValueError(
            "--certify needs a model without hidden layers, since bounds are known only for such "
            f"networks, but this one has hidden layers of {sizes} neurons; leave out --certify"
        )
    X, y = data.X_test, data.y_test
    started = time.perf_counter()
    attacked = attack(
        classifier, X, y, options.budget, options.kind, method=options.method, loss=options.loss
    )
    seconds = time.perf_counter() - started
    at_random = random_change(classifier, X, options.budget, options.kind, random_state=0)
    found = {
        "accuracy": classifier.score(X, y),
        "attacked_accuracy": classifier.score(attacked, y),
        "random_accuracy": classifier.score(at_random, y),
    }
    if options.certify:
        found["certified_accuracy"] = certified_accuracy(classifier, X, y, options.budget, options.kind)
    return {
        **found,
        "budget": options.budget,
        "kind": options.kind,
        "presentations": len(y),
        "attack_seconds": seconds,
        "model": str(options.model),
    }


def _load_model(options):
    """Return the classifier that `options` name, and the images to test it on."""
    from .classifier.classifier import GLMClassifier

    _check_counts(options, "n_test")
    try:
        classifier = GLMClassifier.load(options.model)
    except OSError as error:
        raise ValueError(f"model: {error}") from None
    except ValueError as error:
        raise ValueError(f"model: {error} (`glmbrian train` writes a model.npz)") from None
    known = classifier.classes_.tolist()
    if not set(known) <= set(range(10)):
        raise ValueError(f"model: its classes must be digits from 0 to 9, but are {known}")
    known = [int(label) for label in known]
    digits = known if options.classes is None else _digits(options.classes)
    if not set(digits) <= set(known):
        raise ValueError(
            f"--classes must be among the classes of the model, {_listed(known)}, got {_listed(digits)}"
        )
    classifier.set_params(device=_device(options.device), verbose=not options.quiet)
    if options.gpu is not None:
        classifier.gpu = options.gpu
    return classifier, _load_data(options, digits, 0, options.n_test)


def _export(options):
    _check_counts(options, "n_train")
    data = _load_data(options, _digits(options.classes, least=2), options.n_train, 0)
    classifier = _classifier(options, options.device)
    classifier.export(data.X_train, data.y_train, options.directory)
    folder = shlex.quote(str(options.directory))
    return {
        "directory": str(options.directory),
        "build and run": f"make -C {folder} run",
        "then test": f"glmbrian evaluate {folder}",
    }


def _reproduce(options):
    from dataclasses import replace

    from joblib import cpu_count

    from . import reproduce
    from .support.validation import integer

    protocol = reproduce.QUICK if options.quick else reproduce.FULL
    output = options.output or Path("glmbrian-results" + ("-quick" if options.quick else ""))
    if options.seeds is not None:
        # An interval needs at least two seeds.
        protocol = replace(protocol, n_seeds=integer(options.seeds, "--seeds", 2))
    if options.dask is not None:
        workers = reproduce.dask_workers(options.dask)
    else:
        n_jobs = cpu_count() if options.jobs is None else options.jobs
        workers = reproduce.local_workers(integer(n_jobs, "--jobs"))
        if options.figure != "basis":
            _require_compiler()
    _require_writable(output)
    return reproduce.reproduce(
        list(reproduce.TARGETS) if options.figure == "all" else [options.figure],
        protocol,
        output,
        workers,
        verbose=not options.quiet,
        say=(lambda line: None) if options.quiet else lambda line: print(line, file=sys.stderr),
    )


def _benchmark(options):
    raise RuntimeError(
        "the benchmark, with the implementations it compares with, is no longer part of the "
        "installed package: get the sources of glmbrian and run `make benchmark` there"
    )


def _require_compiler():
    from .devices.cpp_standalone import CompilerNotFound, find_compiler

    if find_compiler() is None:
        raise CompilerNotFound(
            "a C++ compiler and make are needed for so many fits, but were not found: install "
            "the packages g++ and make, for example"
        )


def _cache(options):
    from .support.cache import cache_folder, clear, kept_programs

    about = {"folder": str(cache_folder())}
    if not options.clear:
        programs, size = kept_programs()
        return {**about, "programs": programs, "bytes": size}
    removed, size, problems = clear()
    if problems:
        print("glmbrian cache: could not remove " + "\n  ".join(problems), file=sys.stderr)
    return {
        **about,
        "programs removed": removed,
        "bytes": size,
        "programs not removed": len(problems),
    }


def _check_counts(options, *names):
    from .support.validation import integer

    for name in names:
        integer(getattr(options, name), "--" + name.replace("_", "-"))


def _digits(texts, least=1):
    if list(texts) == ["all"]:
        return list(range(10))
    try:
        digits = [int(text) for text in texts]
    except ValueError:
        raise ValueError(
            f"--classes must be digits from 0 to 9 or 'all', got {_listed(texts)}"
        ) from None
    if len(digits) < least:
        raise ValueError(f"--classes must be at least {least} digits or 'all', got {_listed(texts)}")
    return digits


def _listed(labels):
    return " ".join(map(str, labels))


def _load_data(options, digits, n_train, n_test):
    from .datasets import load_mnist

    if options.full and options.data_dir is None:
        raise ValueError("--full needs --data-dir, a folder with the four files of MNIST")
    if options.full and not (options.n_train == options.n_test == _DEFAULT_IMAGES):
        raise ValueError("--full loads all images: leave out --n-train and --n-test")
    if options.full:
        return load_mnist(digits, data_dir=options.data_dir, full=True)
    return load_mnist(digits, n_train, n_test, data_dir=options.data_dir)


def _classifier(options, device):
    from .classifier.classifier import PAPER_SETTINGS, GLMClassifier

    names = GLMClassifier().get_params()
    settings = {
        "random_state": 0,
        **(PAPER_SETTINGS if options.paper_settings else {}),
        **{name: value for name, value in vars(options).items() if name in names and value is not None},
        "device": device,
        "verbose": not options.quiet,
    }
    return GLMClassifier(**settings)


def _device(name):
    if name != "auto":
        return name
    from .devices.cpp_standalone import find_compiler

    if find_compiler() is not None:
        return "cpp_standalone"
    print(
        "glmbrian: no C++ compiler was found, so the simulation runs in NumPy, which takes "
        "about a hundred times as long",
        file=sys.stderr,
    )
    from brian2 import prefs

    prefs.codegen.target = "numpy"  # Brian's default may need a compiler, too
    return "runtime"


def _require_writable(folder, *files):
    """Check that `files` can be written into `folder` before the work begins.

    Folders created for the check are removed, since the work may fail.
    """
    for file in files:
        if os.path.isdir(file):
            raise IsADirectoryError(f"--output: {file} must be a file or not exist, but is a folder")
    created = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(f"--output: cannot write into the folder {folder}: {error.strerror}") from None
    finally:
        for path in created:
            with contextlib.suppress(OSError):
                path.rmdir()


def _show(result, stream):
    steps = result.get("n_steps")
    lines = {
        "accuracy": ("test accuracy", "{:.4f}"),
        "attacked_accuracy": ("after the attack", "{:.4f}"),
        "random_accuracy": ("after random changes", "{:.4f}"),
        "certified_accuracy": ("certified accuracy", "{:.4f}"),
        "attack_seconds": ("seconds of the attack", "{:.1f}"),
        "mean_decision_step": ("mean decision step", f"{{:.2f}} of {steps}"),
        "silent_fraction": ("without any spike", "{:.2%}"),
        "operations_per_class": ("operations per class", "{:.1f}"),
        "hidden_spikes": ("hidden spikes", "{:.1f}"),
        "presentations_per_second": ("presentations a second", "{:,.0f}"),
        "build_seconds": ("seconds to build", "{:.1f}"),
        "run_seconds": ("seconds to run", "{:.1f}"),
        "peak_memory": ("memory of the program", "{:.0f} MB"),
        "seconds": ("total seconds", "{:.1f}"),
        "seconds_building": ("core seconds to build", "{:.1f}"),
        "seconds_training": ("core seconds to train", "{:.1f}"),
        "most_seconds_to_find_a_program": ("slowest program lookup", "{:.2f}"),
        "presentations": ("presentations", "{:,}"),
        "claims_that_hold": ("claims that hold", "{}"),
    }
    for name, value in result.items():
        if name == "n_steps" or value is None or isinstance(value, (dict, list)):
            continue
        label, form = lines.get(name, (name, "{}"))
        if name == "peak_memory":
            value /= 1e6
        print(f"{label + ':':24}{form.format(value)}", file=stream)
