"""The comparisons of the benchmark.  Each returns plain dictionaries."""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from glmbrian.classifier.classifier import GLMClassifier

from . import workload as workloads
from .interleaved import ratios, spread, take_turns
from .package import Package, accuracy
from .peers import PEERS, PyTorch

#: (N_Y, T = K) of the comparisons with peers.
SIZES = ((2, 4), (2, 8), (10, 8), (10, 16))

#: Batch sizes to try for PyTorch; with larger ones it no longer learns at this rate.
TORCH_BATCHES = (16, 32, 64, 128)


def unavailable():
    """Return why some peers cannot be measured here, by name."""
    reasons = {peer.name: peer.why_unavailable() for peer in PEERS}
    return {name: reason for name, reason in reasons.items() if reason}


def training(sizes, n_rounds, seconds, progress):
    """Time training by the package and by every available peer.

    Returns
    -------
    list of dict
        One for each size and contender: ``n_classes``, ``n_steps``, ``contender``,
        ``microseconds`` per presentation (see `spread`), ``ratio`` of the package's time
        to the contender's, ``accuracy`` (see `package.accuracy`) on the training images
        after the last turn, and ``counts`` for the hand-tuned one (see `HandTuned.counts`).
        The accuracy shows that a contender learns; turns take equal time, so a slow one
        has seen fewer images.
    """
    rows = []
    for n_classes, n_steps in sizes:
        workload = workloads.mnist(n_classes, n_steps)
        progress(f"N_Y={n_classes}, T=K={n_steps}: compiling")
        contenders = _contenders(workload, seconds)
        times = take_turns(
            contenders,
            n_rounds,
            seconds,
            progress,
            f"N_Y={n_classes}, T=K={n_steps}, ",
        )
        for name, contender in contenders.items():
            row = {
                "n_classes": n_classes,
                "n_steps": n_steps,
                "contender": name,
                "microseconds": spread(times[name]),
                "ratio": ratios(times[Package.name], times[name]),
                "accuracy": accuracy(contender, workload.images, workload.labels),
            }
            if hasattr(contender, "counts"):
                row["counts"] = contender.counts()
            rows.append(row)
    return rows


def _contenders(workload, seconds):
    contenders = {Package.name: Package(workload)}
    for peer in PEERS:
        if peer is not PyTorch and peer.why_unavailable() is None:
            contenders[peer.name] = peer(workload)
    if PyTorch.why_unavailable() is None:
        contenders["PyTorch, batch 1"] = PyTorch(workload)
        batched = {f"PyTorch, batch {size}": PyTorch(workload, size) for size in TORCH_BATCHES}
        times = take_turns(batched, 2, seconds / 2)
        best = min(batched, key=lambda name: min(times[name]))
        contenders[best] = batched[best]
    return contenders


def early_stopping(n_steps, n_rounds, n_epochs):
    """Time first-to-spike tests and rate tests, with the same network and images.

    Returns
    -------
    dict
        ``n_steps``, ``ratio`` of images per second, first-to-spike over rate, and
        ``mean_decision_step``.
    """
    data = workloads.repeated(workloads.mnist(2, n_steps), 60_000)
    classifiers = []
    for decoding in ("first-to-spike", "rate"):
        one = GLMClassifier(
            decoding, n_steps=n_steps, n_basis=n_steps, n_epochs=n_epochs, random_state=0, verbose=False
        )
        classifiers.append(one.fit(data.images[:2000], data.labels[:2000]))
    first, rate = classifiers
    rounds = []
    for _ in range(4 * n_rounds):  # a test takes a third of a second, so it is noisy
        seconds = []
        for classifier in classifiers:
            tested = classifier.evaluate(data.images, data.labels)
            seconds.append(classifier.timing_["run_seconds"])
            if classifier is first:
                mean_decision_step = tested["mean_decision_step"]
        rounds.append(seconds[1] / seconds[0])
    return {
        "n_steps": n_steps,
        "ratio": spread(rounds),
        "mean_decision_step": mean_decision_step,
    }


def second_fit(n_rounds):
    """Time a second fit of an architecture, with another seed and learning rate.

    The program takes almost no time for 100 images; the rest is overhead.

    Returns
    -------
    dict
        Seconds of ``fit`` in the ``same_process`` and in a ``fresh_process`` (after the
        import of the package), each a `spread`.
    """
    code = (
        "import sys, time, numpy as np, glmbrian as glm\n"
        "rng = np.random.default_rng(int(sys.argv[1]))\n"
        "X = rng.integers(0, 256, (100, 784)).astype(np.uint8)\n"
        "y = np.arange(100) % 2\n"
        "one = glm.GLMClassifier(n_steps=8, n_basis=8, n_epochs=1, verbose=False,\n"
        "                        random_state=int(sys.argv[1]), learning_rate=float(sys.argv[2]))\n"
        "began = time.perf_counter()\n"
        "one.fit(X, y)\n"
        "print(time.perf_counter() - began)\n"
    )
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 256, (100, 784)).astype(np.uint8), np.arange(100) % 2

    def fit(seed):
        one = GLMClassifier(n_steps=8, n_basis=8, n_epochs=1, random_state=seed, verbose=False)
        began = time.perf_counter()
        one.set_params(learning_rate=0.01 + 0.001 * seed).fit(X, y)
        return time.perf_counter() - began

    fit(0)
    here, fresh = [], []
    for n in range(1, n_rounds + 1):
        here.append(fit(n))
        run = subprocess.run(
            [sys.executable, "-c", code, str(n), "0.02"], capture_output=True, text=True, check=True
        )
        fresh.append(float(run.stdout))
    return {"same_process": spread(here), "fresh_process": spread(fresh)}


def many_images(n_rounds, n_images, whole=None):
    """Train on many images of ten classes, and on 2,000, with T = K = 8.

    Parameters
    ----------
    n_images : int
        The number to which the 10,000 images in the package are repeated.
    whole : Workload, optional
        The whole of MNIST, instead of these.

    Returns
    -------
    dict
        ``n_images``, ``microseconds`` per presentation in three epochs, their ``ratio`` to
        those of as many presentations of 2,000 images, the peak resident memory in bytes of
        the program (``program_memory``) and of a Python process that calls it
        (``python_memory``), and of the same process before the fit (``python_before``).
    """
    if whole is None:
        whole = workloads.repeated(workloads.mnist(10, 8), n_images)
    # The same number of presentations: three epochs of 60,000 images, ninety of 2,000.
    contenders = {"many": Package(whole), "few": Package(workloads.repeated(whole, 2000))}
    times = {name: [] for name in contenders}
    for n in range(n_rounds):
        for name, contender in contenders.items():
            seconds = contender.train(3 * len(whole.images), seed=n)
            times[name].append(1e6 * seconds / contender.n_presentations)
    return {
        "n_images": len(whole.images),
        "microseconds": spread(times["many"]),
        "ratio": ratios(times["many"], times["few"]),
        "program_memory": contenders["many"].timing["peak_memory"],
        **_python_memory(len(whole.images)),
    }


def _python_memory(n_images):
    """Return the memory that a fresh Python process needs for a fit of `n_images`, in bytes."""
    code = (
        "import json, resource, sys\n"
        "from speed import comparisons\n"
        "print(json.dumps(comparisons.memory_of_fit(int(sys.argv[1]))))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(n_images)],
        cwd=Path(__file__).parents[1],  # so that it finds `speed`
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


def memory_of_fit(n_images):
    """Fit `n_images` in this process, and return its memory before and after."""
    before = _own_memory()
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (n_images, 784), dtype=np.uint8)
    X *= rng.random(X.shape[1]) < 0.2
    one = GLMClassifier(n_steps=8, n_basis=8, n_epochs=1, random_state=0, verbose=False)
    one.fit(X, np.arange(n_images) % 10)
    return {"python_before": before, "python_memory": _own_memory()}


def _own_memory():
    try:
        # Unlike getrusage, this does not include memory of the parent process.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes on macOS


def imports(n_rounds):
    """Time ``import brian2`` and then ``import glmbrian``, in fresh processes.

    Returns
    -------
    dict
        ``added``, the seconds that `glmbrian` takes after Brian (a `spread`), and the
        seconds of ``brian2``.
    """
    code = (
        "import time; a = time.perf_counter(); import brian2; b = time.perf_counter()\n"
        "import glmbrian; print(b - a, time.perf_counter() - b)\n"
    )
    rounds = []
    for _ in range(n_rounds):
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        rounds.append([float(text) for text in run.stdout.split()])
    brian, added = zip(*rounds)
    return {"brian2": spread(brian), "added": spread(added)}
