"""Train on a GPU through GeNN: check the parameters and measure presentations per second.

    python benchmarks/gpu_check.py                    do all of it in a temporary folder
    python benchmarks/gpu_check.py --prepare FOLDER   write the projects; needs no GPU
    python benchmarks/gpu_check.py --run FOLDER       build and run them; needs no Brian 2

Running needs GENN_PATH, CUDA_PATH, make and a C++ compiler.  The check trains {5, 7}
with both rules on the GPU and in C++ standalone code on the same machine, and
compares the parameters.  The measurement trains R replicas on all ten digits, with
T = K = 8, and compares their speed with C++ standalone code.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

REPLICAS = (1, 16, 256)
RULES = ("first-to-spike", "rate")
N_CHECKED = 200
TOLERANCE = 1e-5


def prepare(folder):
    """Write all projects, for GeNN on a GPU and for C++ standalone."""
    from dataclasses import replace

    import glmbrian as glm
    from glmbrian.classifier.training import prepare as prepare_training
    from glmbrian.devices import genn
    from glmbrian.devices.cpp_standalone import CppStandalone
    from glmbrian.devices.job import write_training

    def write(name, classifier, data, n_replicas=1):
        prepared = prepare_training([classifier.settings], data.X_train, data.y_train)
        (start,), inputs, labels = prepared.starts, prepared.inputs, prepared.labels
        training = prepared.training
        network = replace(prepared.network, n_replicas=n_replicas, gpu=True)
        project = folder / name
        project.mkdir(parents=True)
        if classifier.device == "genn":
            genn.generate_project(network, project)
            write_training(project / "job", network, start, inputs, labels, training)
        else:
            CppStandalone().export(network, start, inputs, labels, training, project)
        details = {
            "n_replicas": n_replicas,
            "presentations": training.n_epochs * len(inputs),
            "duration": genn.duration(network, 2 * training.n_epochs * len(inputs)),
            "n_inputs": network.n_inputs,
            "n_classes": network.n_classes,
            "n_basis": network.basis.n_basis,
        }
        (project / "details.json").write_text(json.dumps(details))

    pair = glm.datasets.load_mnist((5, 7), N_CHECKED // 2, 0)
    ten = glm.datasets.load_mnist("all", 50, 0)
    for device in ("genn", "cpp_standalone"):
        settings = dict(device=device, n_epochs=1, random_state=0)
        for rule in RULES:
            write(f"check-{rule}-{device}", glm.GLMClassifier(rule, **settings), pair)
    write("speed-cpp_standalone", glm.GLMClassifier(n_epochs=20, random_state=0), ten)
    for n_replicas in REPLICAS:
        classifier = glm.GLMClassifier(device="genn", n_epochs=1, random_state=0)
        write(f"speed-genn-{n_replicas}", classifier, ten, n_replicas)


def build(project):
    details = json.loads((project / "details.json").read_text())
    _tile_start(project, details)
    log = project / "build.log"
    with open(log, "w") as output:
        code = subprocess.call(["make", "all"], cwd=project, stdout=output, stderr=subprocess.STDOUT)
    if code:
        sys.exit(f"building {project.name} failed:\n" + "\n".join(log.read_text().splitlines()[-30:]))


def _tile_start(project, details):
    """Give every replica the initial parameters and learning rate of the first."""
    n_replicas, job = details["n_replicas"], project / "job"
    if n_replicas == 1:
        return
    values = np.fromfile(job / "parameters.bin")
    n_outputs = details["n_classes"]
    weights, bias = values[:-n_outputs], values[-n_outputs:]
    weights = weights.reshape(details["n_inputs"], 1, -1)
    tiled = np.tile(weights, (1, n_replicas, 1)).ravel()
    np.concatenate([tiled, np.tile(bias, n_replicas)]).tofile(job / "parameters.bin")
    settings = dict(line.split() for line in (job / "settings.txt").read_text().splitlines())
    settings["learning_rate"] = ",".join([settings["learning_rate"]] * n_replicas)
    (job / "settings.txt").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))


def run(project):
    """Run a built project; return its details, parameters and run time."""
    details = json.loads((project / "details.json").read_text())
    arguments = ["./main"]
    if "cpp_standalone" not in project.name:
        arguments += ["test", details["duration"]]
    subprocess.run(arguments, cwd=project, check=True, capture_output=True)
    lines = dict(line.split() for line in (project / "job" / "run.txt").read_text().splitlines())
    return details, np.fromfile(project / "job" / "trained.bin"), float(lines["seconds"])


def check_and_measure(folder):
    projects = sorted(path for path in folder.iterdir() if path.is_dir())
    # The first build also builds GeNN's own libraries, which parallel builds must not do.
    build(folder / "check-rate-genn")
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        list(pool.map(build, (path for path in projects if path.name != "check-rate-genn")))
    card = subprocess.run(
        ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True
    )
    print("card:", card.stdout.strip(), flush=True)
    worst = 0.0
    for rule in RULES:
        _, on_gpu, _ = run(folder / f"check-{rule}-genn")
        _, on_cpu, _ = run(folder / f"check-{rule}-cpp_standalone")
        difference = float(np.abs(on_gpu - on_cpu).max())
        worst = max(worst, difference)
        print(f"{rule}: {N_CHECKED} presentations, largest difference {difference:.2e}", flush=True)
    details, _, seconds = run(folder / "speed-cpp_standalone")
    print(f"{'':>24}{'presentations/s':>18}{'times R':>12}")
    speed = details["presentations"] / seconds
    print(f"{'C++ standalone, 1 core':>24}{speed:18,.0f}{speed:12,.0f}", flush=True)
    first = None
    for n_replicas in REPLICAS:
        details, learned, seconds = run(folder / f"speed-genn-{n_replicas}")
        speed = details["presentations"] / seconds
        print(
            f"{f'GeNN on GPU, R = {n_replicas}':>24}{speed:18,.0f}{speed * n_replicas:12,.0f}",
            flush=True,
        )
        bias = learned[-n_replicas * details["n_classes"] :].reshape(n_replicas, -1)
        first = bias[0] if first is None else first
        worst = max(worst, float(np.abs(bias - first).max()))
    print(f"largest difference overall: {worst:.2e}, allowed {TOLERANCE:g}")
    return worst <= TOLERANCE


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prepare", type=Path, metavar="FOLDER")
    parser.add_argument("--run", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.prepare:
        prepare(options.prepare)
    if options.run:
        sys.exit(not check_and_measure(options.run.resolve()))
    if not (options.prepare or options.run):
        from glmbrian.devices.genn_environment import GeNNNotFound, check_environment

        try:
            check_environment(gpu=True)
        except GeNNNotFound as error:
            parser.error(str(error))
        with tempfile.TemporaryDirectory() as folder:
            prepare(Path(folder))
            sys.exit(not check_and_measure(Path(folder)))


if __name__ == "__main__":
    main()
