"""The file of a classifier: its content, and checks of it before use."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core.bases import Basis, CustomBasis
from ..devices.problem import LARGEST, LayerParameters, Parameters
from ..support.storage import load_npz
from ..support.validation import finite_array, integer
from .input_range import InputRange
from .labels import as_labels, check_classes
from .settings import EARLIER_DEFAULTS
from .streams import Streams

#: The parts of a file, and the kinds of their dtypes.
_KINDS = {
    "weights": "f",
    "feedback": "f",
    "bias": "f",
    "basis": "f",
    "feedback_basis": "f",
    "classes": "biufUS",
    "history": "f",
    "config": "U",
    "input_range": "f",
    "feature_names": "U",
    "validation_scores": "f",
    "hidden_basis": "f",
    "hidden_feedback_basis": "f",
    "optimizer_state": "f",
}
_OPTIONAL = (
    *("input_range", "feature_names", "validation_scores"),
    *("hidden_basis", "hidden_feedback_basis", "optimizer_state"),
)

#: The parts that each hidden layer has, by its number.
_LAYER_PARTS = ("weights", "feedback", "bias")
_LAYER_PART = re.compile(rf"hidden_(0|[1-9]\d{{0,3}})_({'|'.join(_LAYER_PARTS)})")


def _kind(name):
    """Return the kinds of dtype that a part of a file may have, or None if there is no such part."""
    return "f" if _LAYER_PART.fullmatch(name) else _KINDS.get(name)


#: The entries of the configuration, and those that older files lack.
_CONFIG = ("parameters", "keys", "version")
_LATER_CONFIG = ("n_presentations", "inputs", "format")

#: Parameters of `GLMClassifier` that older files lack; they then have their defaults, or the
#: `EARLIER_DEFAULTS`.
_LATER_PARAMETERS = (
    *("class_weight", "scale_inputs"),
    *("hidden", "hidden_basis", "hidden_feedback", "credit"),
    *("learning_rate_schedule", "average", "weight_decay"),
    *("early_stopping", "validation_fraction", "n_iter_no_change", "tol"),
    *("adversarial", "target_start", "optimizer", "clip_norm"),
)


@dataclass(frozen=True)
class SavedModel:
    """What a file holds about a classifier, which must check the parameters itself.

    parameters : dict
        Parameters of `GLMClassifier`, as in JSON.
    config : dict
        The parameters and everything else kept as JSON.
    input_range : ndarray of float, shape (2, n_inputs), optional
        The lowest and the highest value of each input in training.
    feature_names : ndarray of str, shape (n_inputs,), optional
    inputs_seen : InputRange, optional
    has_checksum : bool
        Files of version 0.1 have none.
    hidden_basis, hidden_feedback : Basis, optional
    validation_scores : ndarray of float, shape (n_epochs,), optional
    optimizer_state : ndarray of float, optional
        See `OptimizerState.to_vector`.
    """

    parameters: dict[str, Any]
    config: dict[str, Any]
    streams: Streams
    n_presentations: int
    learned: Parameters
    basis: Basis
    classes: np.ndarray
    history: np.ndarray
    input_range: np.ndarray | None
    feature_names: np.ndarray | None
    inputs_seen: InputRange | None
    has_checksum: bool
    hidden_basis: Basis | None
    hidden_feedback: Basis | None
    validation_scores: np.ndarray | None
    optimizer_state: np.ndarray | None

    @classmethod
    def read(cls, path: str | Path, names: Iterable[str]) -> "SavedModel":
        """Read and check a file.

        Parameters
        ----------
        path : str or Path
        names : iterable of str
            The parameters that a classifier has.

        Raises
        ------
        OSError
            If the file cannot be read.
        Exception
            Any kind, if it is not such a file; see `storage.reading`.
        """
        archive = load_npz(path, _kind, [name for name in _KINDS if name not in _OPTIONAL])
        content = archive.content
        config = _read_config(content["config"])
        basis = CustomBasis(_real(content, "basis", ("window", "n_basis")))
        classes = content["classes"]
        if not np.array_equal(check_classes(as_labels(classes, name="classes")[0], "classes"), classes):
            raise ValueError("classes must be distinct and sorted")
        n_outputs, n_basis = len(classes), basis.n_basis
        weights = _real(content, "weights", ("n_inputs", n_outputs, n_basis))
        hidden_basis, hidden_feedback = (
            CustomBasis(_real(content, name, ("window", "n_basis"))) if name in content else None
            for name in ("hidden_basis", "hidden_feedback_basis")
        )
        hidden = _hidden_layers(content, hidden_basis, hidden_feedback, len(weights))
        n_inputs = len(hidden[0].weights if hidden else weights)
        if n_inputs == 0:
            raise ValueError("weights must have at least one input")
        if not np.array_equal(content["feedback_basis"], basis.matrix):
            raise ValueError("feedback_basis must be the same as basis")
        learned = Parameters(
            weights,
            _real(content, "feedback", (n_outputs, n_basis)),
            _real(content, "bias", (n_outputs,)),
            hidden,
        )
        saved = cls(
            parameters=_parameters(config, names),
            config=config,
            streams=Streams.from_file(config["keys"]),
            # Older files lack it; further training then repeats the same spikes.
            n_presentations=integer(config.get("n_presentations", 0), "n_presentations", 0, 2**63 - 1),
            learned=learned,
            basis=basis,
            classes=classes,
            history=_real(content, "history", ("n_epochs",)),
            input_range=_input_range(content, n_inputs),
            feature_names=_feature_names(content, n_inputs),
            # Files of version 0.1 lack it.
            inputs_seen=InputRange.from_config(config["inputs"]) if "inputs" in config else None,
            has_checksum=archive.has_checksum,
            hidden_basis=hidden_basis,
            hidden_feedback=hidden_feedback,
            validation_scores=_validation_scores(content),
            optimizer_state=_optimizer_state(content),
        )
        if "n_presentations" in config and len(saved.history) > saved.n_presentations:
            raise ValueError(
                f"history must have one entry per epoch, at most {saved.n_presentations}, got "
                f"{len(saved.history)}"
            )
        if "format" in config and not archive.has_checksum:
            raise ValueError("its checksum is missing")
        archive.check()
        return saved


def _hidden_layers(content, basis, feedback_basis, n_last):
    """Return the `LayerParameters` of the hidden layers, the last of which has `n_last` neurons."""
    numbers = {int(match[1]) for match in map(_LAYER_PART.fullmatch, content) if match}
    if numbers != set(range(len(numbers))):
        raise ValueError(f"it lacks a hidden layer: it has the numbers {sorted(numbers)}")
    if bool(numbers) != (basis is not None) or (feedback_basis is not None and not numbers):
        raise ValueError("hidden_basis must be there if there are hidden layers, and only then")
    layers: list[LayerParameters] = []
    for number in range(len(numbers)):
        names = [f"hidden_{number}_{part}" for part in _LAYER_PARTS]
        missing = [name for name in names if name not in content]
        if missing:
            raise ValueError(f"it lacks {missing[0]!r}")
        n_inputs = len(layers[-1].bias) if layers else "n_inputs"
        bias = _real(content, names[2], ("n",))
        n_feedback = feedback_basis.n_basis if feedback_basis else 0
        layers.append(
            LayerParameters(
                _real(content, names[0], (n_inputs, bias.size, basis.n_basis)),
                _real(content, names[1], (bias.size, n_feedback)),
                bias,
            )
        )
    if layers and len(layers[-1].bias) != n_last:
        raise ValueError(f"weights must have {len(layers[-1].bias)} inputs, got {n_last}")
    if any(0 in layer.weights.shape for layer in layers):
        raise ValueError("hidden layers must have at least one input and one neuron")
    return tuple(layers)


def _real(content, name, shape):
    array = finite_array(content[name], name, shape)
    if array.size and np.abs(array).max() > LARGEST:
        raise ValueError(f"{name} must hold values up to {LARGEST:g}, got {np.abs(array).max():g}")
    return array


def _read_config(text):
    def refuse(constant):
        raise ValueError(f"config must hold finite numbers, got {constant}")

    if text.shape != ():
        raise ValueError(f"config must be a single text, got the shape {text.shape}")
    config = json.loads(text.item(), parse_constant=refuse)
    if not isinstance(config, dict):
        raise TypeError(f"config must be a mapping, got {config!r}")
    for name in _CONFIG:
        if name not in config:
            raise ValueError(f"config lacks {name!r}")
    unknown = sorted(set(config) - {*_CONFIG, *_LATER_CONFIG})
    if unknown:
        raise ValueError(f"config holds {unknown[0]!r}, which this version does not know")
    if not isinstance(config["version"], str):
        raise TypeError(f"version must be a string, got {config['version']!r}")
    return config


def _parameters(config, names):
    parameters = config["parameters"]
    if not isinstance(parameters, dict):
        raise TypeError(f"parameters must be a mapping, got {parameters!r}")
    unknown = sorted(set(parameters) - set(names))
    if unknown:
        raise ValueError(
            f"it has the parameter {unknown[0]!r}, which this version does not know; it was written "
            f"by glmbrian {config['version']}"
        )
    missing = sorted(set(names) - set(parameters) - set(_LATER_PARAMETERS))
    if missing:
        raise ValueError(f"it lacks the parameter {missing[0]!r}")
    # A file holds no generators, and sizes must be integers even if a basis replaces them.
    for name, minimum in (("random_state", 0), ("start_state", 0), ("n_basis", 1), ("window", 1)):
        if parameters[name] is not None:
            integer(parameters[name], name, minimum)
    return {**EARLIER_DEFAULTS, **parameters}


def _input_range(content, n_inputs):
    if "input_range" not in content:
        return None
    lowest, highest = input_range = finite_array(content["input_range"], "input_range", (2, n_inputs))
    with np.errstate(over="ignore"):
        if np.any(lowest > highest) or not np.all(np.isfinite(highest - lowest)):
            raise ValueError("input_range must hold the lowest values of the inputs, then the highest")
    return input_range


def _optimizer_state(content):
    if "optimizer_state" not in content:
        return None
    return _real(content, "optimizer_state", ("n",))


def _validation_scores(content):
    if "validation_scores" not in content:
        return None
    scores = finite_array(content["validation_scores"], "validation_scores", content["history"].shape)
    if np.any((scores < 0) | (scores > 1)):
        raise ValueError("validation_scores must be from 0 to 1")
    return scores


def _feature_names(content, n_inputs):
    names = content.get("feature_names")
    if names is None:
        return None
    if names.shape != (n_inputs,) or len(set(names.tolist())) < n_inputs:
        raise ValueError(f"feature_names must be {n_inputs} distinct names, got {names.tolist()[:10]}")
    return names
