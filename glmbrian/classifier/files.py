"""Saving a classifier, and loading it from a file or from an exported project."""

import json
import numbers
import os
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler

from .._version import __version__
from ..core.activations import name_to_save
from ..core.adversarial import adversarial_to_save, from_job, get_adversarial
from ..core.bases import CustomBasis
from ..core.credit import credit_to_save
from ..core.objectives import objective_to_save
from ..core.optimisers import get_optimizer, optimizer_from_file, optimizer_to_save
from ..core.schedules import get_schedule, schedule_to_save
from ..core.updates import OptimizerState
from ..devices import get_device
from ..devices.problem import LARGEST
from ..support.storage import FORMAT, as_path, reading, save_npz
from .inputs import scaled
from .labels import as_labels, class_weight_from_file, class_weight_to_save
from .learned import Learned
from .saved_model import SavedModel
from .settings import (
    check_rejection,
    check_settings,
    default_basis_size,
    make_basis,
    n_averaged_epochs,
)
from .training import fitted_network, learned_parameters

if TYPE_CHECKING:
    from .classifier import GLMClassifier

#: The file in an exported folder that holds the classifier before training.
EXPORTED = "classifier.npz"


#: The parameters that are bases; JSON holds their matrices.
_BASES = ("basis", "hidden_basis", "hidden_feedback")


def save_classifier(classifier: "GLMClassifier", path: str | Path) -> None:
    """Write a fitted `GLMClassifier` to a file (see `GLMClassifier.save`)."""
    content: dict[str, Any] = {
        "weights": classifier.weights_,
        "feedback": classifier.feedback_,
        "bias": classifier.bias_,
        "basis": classifier.basis_.matrix,
        "feedback_basis": classifier.basis_.matrix,
        "classes": as_labels(classifier.classes_, name="classes_")[0],
        "history": classifier.history_,
        "config": np.array(json.dumps(_config(classifier))),
    }
    layers = classifier.hidden_layers_
    for number, layer in enumerate(layers):
        for name in ("weights", "feedback", "bias"):
            content[f"hidden_{number}_{name}"] = getattr(layer, name)
    if layers:
        content["hidden_basis"] = layers[0].basis.matrix
        if layers[0].feedback_basis is not None:
            content["hidden_feedback_basis"] = layers[0].feedback_basis.matrix
    state = getattr(classifier, "optimizer_state_", None)
    if state is not None and state.optimizer == get_optimizer(classifier.optimizer):
        content["optimizer_state"] = state.to_vector()
    if hasattr(classifier, "validation_scores_"):
        content["validation_scores"] = classifier.validation_scores_
    scaler = classifier.scaler_
    if scaler is not None:
        content["input_range"] = np.array([scaler.data_min_, scaler.data_max_])
    if hasattr(classifier, "feature_names_in_"):
        content["feature_names"] = classifier.feature_names_in_.astype(str)
    save_npz(path, content)


def check_can_be_saved(classifier: "GLMClassifier") -> None:
    """Raise a ValueError unless everything that may be custom has a name that a file can store."""
    name_to_save(classifier.activation)
    objective_to_save(classifier.objective)
    credit_to_save(classifier.credit)
    schedule_to_save(classifier.learning_rate_schedule)
    adversarial_to_save(classifier.adversarial)
    optimizer_to_save(classifier.optimizer)


def _config(classifier):
    parameters = classifier.get_params()
    parameters["activation"] = name_to_save(classifier.activation)
    parameters["decoding"] = objective_to_save(classifier.objective)
    parameters["credit"] = credit_to_save(classifier.credit)
    parameters["learning_rate_schedule"] = schedule_to_save(classifier.learning_rate_schedule)
    parameters["adversarial"] = adversarial_to_save(classifier.adversarial)
    parameters["optimizer"] = optimizer_to_save(classifier.optimizer)
    parameters["hidden"] = [int(size) for size in classifier.hidden]
    # JSON keeps every bit of a float.
    for name in _BASES:
        if parameters[name] is not None:
            parameters[name] = parameters[name].matrix.tolist()
    parameters["class_weight"] = class_weight_to_save(classifier.class_weight, classifier.classes_)
    # A generator is not saved; the keys drawn from it are.
    for name in ("random_state", "start_state"):
        if not isinstance(parameters[name], (numbers.Integral, type(None))):
            parameters[name] = None
    plain = {name: _as_json(value) for name, value in parameters.items()}
    config = {
        "parameters": plain,
        "keys": classifier.streams_.to_file(),
        "n_presentations": classifier.n_presentations_,
        "version": __version__,
        "format": FORMAT,
    }
    if classifier.inputs_seen_ is not None:
        config["inputs"] = classifier.inputs_seen_._asdict()
    return config


def _as_json(value):
    """Return a parameter in a type that JSON knows: numbers may be of any type, such as a fraction."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def load_classifier(kind: type["GLMClassifier"], path: str | Path) -> "GLMClassifier":
    """Load a classifier of class `kind` (see `GLMClassifier.load`)."""
    path = as_path(path)
    if os.path.isdir(path):
        return _load_exported(kind, path)
    with reading(path, "GLMClassifier.save"):
        return _restored(kind, SavedModel.read(path, signature(kind).parameters))


def _restored(kind, saved):
    classifier = kind(**saved.parameters)
    classifier.optimizer = optimizer_from_file(classifier.optimizer)
    for name in _BASES:
        if getattr(classifier, name) is not None:
            setattr(classifier, name, CustomBasis(getattr(classifier, name)))
    if isinstance(classifier.hidden, list):
        classifier.hidden = tuple(classifier.hidden)
    classifier.class_weight = class_weight_from_file(classifier.class_weight, saved.classes)
    check_settings(classifier)
    _keep_former_basis(classifier, saved.basis)
    check_rejection(classifier, saved.classes)
    input_range, names = saved.input_range, saved.feature_names
    classifier.adopt(
        Learned(
            saved.learned,
            saved.basis,
            saved.classes,
            saved.streams,
            saved.n_presentations,
            saved.history,
            scaler=None if input_range is None else MinMaxScaler(clip=True).fit(input_range),
            inputs_seen=saved.inputs_seen,
            feature_names=None if names is None else names.astype(object),
            hidden_basis=saved.hidden_basis,
            hidden_feedback=saved.hidden_feedback,
            validation_scores=saved.validation_scores,
        )
    )
    fitted_network(classifier)  # raises if it is too large
    if saved.optimizer_state is not None:
        classifier.optimizer_state_ = OptimizerState.from_vector(
            saved.optimizer_state,
            get_optimizer(classifier.optimizer),
            1,
            learned_parameters(classifier).arrays_of_all,
        )
    if input_range is not None:
        scaled(classifier, input_range)  # raises unless scale_inputs is True
    elif classifier.scale_inputs and saved.inputs_seen and saved.inputs_seen.kind != "trains":
        raise ValueError("it lacks 'input_range'")
    return classifier


def _keep_former_basis(classifier, basis):
    """Let `fit` use the basis of the file, if that was the default once but is not today."""
    if classifier.basis is None and basis.matrix.shape[::-1] == default_basis_size(classifier):
        if not np.array_equal(basis.matrix, make_basis(classifier).matrix):
            classifier.basis = basis


def _load_exported(kind, folder):
    if not os.path.isfile(folder / EXPORTED):
        raise ValueError(f"path: the folder {folder} was not written by GLMClassifier.export")
    with reading(folder, "GLMClassifier.export"):
        saved = SavedModel.read(folder / EXPORTED, signature(kind).parameters)
        classifier = _restored(kind, saved)
        network = fitted_network(classifier)
        parameters, history, state, run = get_device(classifier.device).read_exported(
            network, folder, saved.has_checksum
        )
        streams, n_presentations = adopt_settings(classifier, run, len(history))
        check_settings(classifier)
        if not parameters.is_moderate(history):
            raise ValueError(
                f"its training diverged to parameters or log-likelihoods beyond {LARGEST:g}; reduce the "
                "learning_rate in job/settings.txt, or export again, and run `make run`"
            )
        classifier.adopt(
            Learned(
                parameters,
                saved.basis,
                saved.classes,
                streams,
                n_presentations,
                history[:, 0],
                scaler=classifier.scaler_,
                inputs_seen=classifier.inputs_seen_,
                feature_names=getattr(classifier, "feature_names_in_", None),
                hidden_basis=saved.hidden_basis,
                hidden_feedback=saved.hidden_feedback,
                optimizer_state=replace(state, optimizer=get_optimizer(classifier.optimizer)),
            )
        )
    return classifier


def adopt_settings(classifier, run, n_epochs):
    """Adopt the settings that the user may have changed in an exported project.

    Return the streams, and the number of presentations.
    """
    streams = classifier.streams_
    if not run:  # programs of version 0.1 do not report their settings
        n_items = classifier.n_presentations_ // classifier.n_epochs
        classifier.n_epochs = n_epochs
        return streams, n_epochs * n_items
    for name in ("n_epochs", "batch_size"):
        setattr(classifier, name, int(run[name]))
    if int(run["target_period"]) != classifier.objective.period:
        classifier.target_period = int(run["target_period"])
    start = int(run.get("target_start", 0)) or None  # older programs do not know it
    if start != classifier.objective.start:
        classifier.target_start = start
    classifier.learning_rate = float(run["learning_rate"])
    # 0.1 did not have these
    classifier.weight_decay = float(run.get("weight_decay", 0))
    n_averaged = int(run.get("n_averaged", 0))
    if n_averaged != n_averaged_epochs(classifier):
        classifier.average = n_averaged / classifier.n_epochs
    schedule = run.get("learning_rate_schedule", "function")
    if run.get("rate_schedule") == "0":  # an older program
        schedule = "constant"
    if schedule not in ("function", get_schedule(classifier.learning_rate_schedule).name):
        classifier.learning_rate_schedule = schedule
    if "clip_norm" in run:  # older programs know neither
        classifier.clip_norm = float(run["clip_norm"]) or None
        optimizer = get_optimizer(classifier.optimizer)
        values = [float(value) for value in run["optimizer_settings"].split(",")]
        changed = optimizer.with_settings(values)
        if changed != optimizer:
            classifier.optimizer = changed
    if run.get("weighted") == "0":
        classifier.class_weight = None
    adversarial = from_job(run)
    if adversarial != get_adversarial(classifier.adversarial):
        classifier.adversarial = adversarial and adversarial.settings
    if classifier.n_epochs != n_epochs:
        raise ValueError(f"job/history.bin must hold {classifier.n_epochs} epochs, got {n_epochs}")
    streams = replace(streams, train_inputs=int(run["input_key"]), order=int(run["order_key"]))
    return streams, int(run["first_presentation"]) + n_epochs * int(run["n_items"])
