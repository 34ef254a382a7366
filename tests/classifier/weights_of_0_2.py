"""What version 0.2.0.dev0 learned before it had optimisers: gradient ascent must give the same.

    python tests/classifier/weights_of_0_2.py write FILE [DEVICE ...]
    python tests/classifier/weights_of_0_2.py compare FILE [DEVICE ...]

`compare` says for each case whether all bits are equal, which holds only on the machine and with the compiler that
wrote the file, and how far apart the values are.
"""

import sys
import tempfile

import numpy as np
from brian2 import Network, device, ms, prefs, set_device

import glmbrian as glm

RANDOM = np.random.default_rng(7)
X = RANDOM.integers(0, 256, (24, 30)).astype(np.uint8)
Y = np.arange(24) % 3
WEIGHTS = RANDOM.random(24) * (RANDOM.random(24) > 0.2)

SMALL = {
    "n_steps": 8,
    "n_basis": 3,
    "n_epochs": 6,
    "verbose": False,
    "random_state": 3,
    "bias_init": -2.0,
}

#: Of each case: the parameters of a classifier, and whether presentations have weights.
CASES = {
    "first spike": ({}, False),
    "first spike, batches of 8, linear, mean": (
        {"batch_size": 8, "learning_rate_schedule": "linear", "average": 0.5, "learning_rate": 0.1},
        False,
    ),
    "first spike, weights decay": ({"weight_decay": 0.5, "batch_size": 5, "learning_rate": 0.1}, True),
    "first spike, own schedule": ({"learning_rate_schedule": np.sqrt, "average": 0.0}, True),
    "rate": ({"decoding": "rate", "target_period": 3, "average": 0.3}, False),
    "rate, weights decay": ({"decoding": "rate", "weight_decay": 0.1, "batch_size": 7}, True),
    "adversarial": ({"adversarial": {"budget": 2, "kind": "flip", "fraction": 0.7}}, False),
    "hidden": ({"hidden": (7, 5), "hidden_feedback": glm.IndicatorBasis(2)}, False),
    "hidden, three-factor, batches of 8": (
        {"hidden": (6,), "credit": "three-factor", "batch_size": 8, "weight_decay": 0.1},
        True,
    ),
    "hidden, rate, linear, mean": (
        {"hidden": (6,), "decoding": "rate", "learning_rate_schedule": "linear", "average": 0.4},
        False,
    ),
    "early stopping": (
        {"early_stopping": True, "validation_fraction": 0.25, "n_iter_no_change": 3},
        False,
    ),
}

#: What GeNN can train.
ON_GENN = ("first spike", "rate", "first spike, own schedule", "early stopping")


def learned(classifier):
    """Return all that a classifier has learned, as one vector."""
    parts = [classifier.weights_, classifier.feedback_, classifier.bias_, classifier.history_]
    for layer in classifier.hidden_layers_:
        parts += [layer.weights, layer.feedback, layer.bias]
    return np.concatenate([np.ravel(part) for part in parts])


def fitted(name, on):
    """Return what a case learns on a device."""
    parameters, weighted = CASES[name]
    classifier = glm.GLMClassifier(**{**SMALL, **parameters, "device": on})
    classifier.fit(X, Y, WEIGHTS if weighted else None)
    first = learned(classifier)
    if parameters.get("early_stopping"):
        return first
    return np.concatenate([first, learned(classifier.partial_fit(X[:20], Y[:20]))])


def ensemble(on):
    """Return what an ensemble learns, whose members learn from different presentations."""
    members = [
        glm.GLMClassifier(**{**SMALL, "device": on, "learning_rate": rate, "average": 0.5})
        for rate in (0.01, 0.02, 0.05)
    ]
    folds = (np.arange(24) % 4 != np.arange(3)[:, np.newaxis]).astype(float)
    glm.fit_ensemble(members, X, Y, folds, n_jobs=1)
    return np.concatenate([learned(member) for member in members])


def trained(on, batch_size):
    """Return what a Trainer learns in a network with hidden neurons, feedback and delays."""
    if on == "cpp_standalone":
        set_device("cpp_standalone", build_on_run=False)
    labels = np.tile([0, 1, 1], 20)
    images = np.array([[1.0, 0.5, 0.0, 0.3], [0.0, 0.5, 1.0, 0.6]])[labels]
    inputs = glm.RateEncoder(images, n_steps=6, random_state=1, dt=1 * ms, name="inputs")
    basis = glm.RaisedCosineBasis(2, 4)
    hidden = glm.GLMNeurons(5, basis, feedback_basis=basis, random_state=2, dt=1 * ms, name="hidden")
    outputs = glm.GLMNeurons(2, basis, feedback_basis=basis, random_state=3, dt=1 * ms, name="outputs")
    hidden.bias, outputs.bias = -1, -2
    first = glm.GLMSynapses(inputs, hidden, delay=1 * ms, name="first")
    second = glm.GLMSynapses(hidden, outputs, name="second")
    random = np.random.default_rng(5)
    first.w = random.normal(size=(4, 5, 2))
    second.w = random.normal(size=(5, 2, 2))
    trainer = glm.Trainer(
        outputs, [first, second], n_steps=6, labels=labels, rule="rate", learning_rate=0.05,
        batch_size=batch_size, is_training=np.arange(60) % 10 > 0, name="trainer",
    )  # fmt: skip
    Network(inputs, hidden, outputs, first, second, trainer).run(trainer.duration + 2 * ms)
    if on == "cpp_standalone":
        device.build(directory=tempfile.mkdtemp(), compile=True, run=True, debug=False)
    parts = [first.w, second.w, *(group.bias_[:] for group in (hidden, outputs))]
    parts += [group.feedback_weights for group in (hidden, outputs)] + [trainer.log_likelihoods]
    found = np.concatenate([np.ravel(np.asarray(part)) for part in parts])
    if on == "cpp_standalone":
        device.reinit()
        device.activate()
        set_device("runtime")
    return found


def all_of(on):
    """Yield the name and the result of each case on a device."""
    names = ON_GENN if on == "genn" else CASES
    for name in names:
        yield f"{on}: {name}", fitted(name, on)
    yield f"{on}: ensemble", ensemble(on)
    if on != "genn":
        for batch_size in (1, 4):
            yield f"{on}: trainer, batches of {batch_size}", trained(on, batch_size)


def main(job, path, *devices):
    """Write the results of all cases, or compare them with those in a file."""
    prefs.codegen.target = "numpy"
    found = {
        name: values for on in devices or ("runtime", "cpp_standalone") for name, values in all_of(on)
    }
    if job == "write":
        np.savez_compressed(path, **found)
        return
    before = np.load(path)
    for name, values in found.items():
        distance = np.nanmax(np.abs(before[name] - values))
        same = before[name].tobytes() == values.tobytes()
        print(f"{name:60} {'all bits equal' if same else f'differ by up to {distance:.2g}'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
