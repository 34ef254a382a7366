"""Saving a classifier, and loading it from a file or from an exported project."""

import json
import numbers
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler

from .._version import __version__
from ..core.activations import name_to_save
from ..core.adversarial import adversarial_to_save, from_job
from ..core.bases import CustomBasis
from ..core.credit import credit_to_save
from ..core.objectives import objective_to_save
from ..core.optimisers import optimizer_from_file, optimizer_to_save
from ..core.schedules import schedule_to_save
from ..core.updates import OptimizerState
from ..devices import get_device
from ..devices.problem import LARGEST
from ..support.storage import FORMAT, as_path, reading, save_npz
from .fitted_state import FittedState
from .inputs import InputSpec
from .labels import as_labels, class_weight_from_file, class_weight_to_save
from .saved_model import SavedModel
from .settings import Settings

#: The file in an exported folder that holds the classifier before training.
EXPORTED = "classifier.npz"


#: The parameters that are bases; JSON holds their matrices.
_BASES = ("basis", "hidden_basis", "hidden_feedback")


def save_model(parameters: Mapping[str, Any], state: FittedState, path: str | Path) -> None:
    """Write the parameters and the state of a `GLMClassifier` to a file (see `GLMClassifier.save`)."""
    settings = Settings.of(parameters)
    learned, spec = state.parameters, state.input_spec
    feedback = learned.feedback
    if feedback.size == 0:
        feedback = np.zeros((len(state.classes), state.basis.n_basis))
    content: dict[str, Any] = {
        "weights": learned.weights,
        "feedback": feedback,
        "bias": learned.bias,
        "basis": state.basis.matrix,
        "feedback_basis": state.basis.matrix,
        "classes": as_labels(state.classes, name="classes_")[0],
        "history": state.history,
        "config": np.array(json.dumps(_config(parameters, settings, state))),
    }
    for number, layer in enumerate(state.hidden_layers):
        for name in ("weights", "feedback", "bias"):
            content[f"hidden_{number}_{name}"] = getattr(layer, name)
        content["hidden_basis"] = layer.basis.matrix
        if layer.feedback_basis is not None:
            content["hidden_feedback_basis"] = layer.feedback_basis.matrix
    optimizer = state.optimizer_state
    if optimizer is not None and optimizer.optimizer == settings.architecture.optimizer:
        content["optimizer_state"] = optimizer.to_vector()
    if state.validation_scores is not None:
        content["validation_scores"] = state.validation_scores
    if spec.scaler is not None:
        content["input_range"] = np.array([spec.scaler.data_min_, spec.scaler.data_max_])
    if spec.names is not None:
        content["feature_names"] = spec.names.astype(str)
    save_npz(path, content)


def as_saved(parameters: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Return what a file says about everything that may be custom; raise a ValueError if it cannot."""
    return {
        "activation": name_to_save(parameters["activation"]),
        "decoding": objective_to_save(settings.objective),
        "credit": credit_to_save(parameters["credit"]),
        "learning_rate_schedule": schedule_to_save(parameters["learning_rate_schedule"]),
        "adversarial": adversarial_to_save(parameters["adversarial"]),
        "optimizer": optimizer_to_save(parameters["optimizer"]),
    }


def _config(parameters, settings, state):
    saved = {**parameters, **as_saved(parameters, settings)}
    saved["hidden"] = [int(size) for size in saved["hidden"]]
    # JSON keeps every bit of a float.
    for name in _BASES:
        if saved[name] is not None:
            saved[name] = saved[name].matrix.tolist()
    saved["class_weight"] = class_weight_to_save(saved["class_weight"], state.classes)
    # A generator is not saved; the keys drawn from it are.
    for name in ("random_state", "start_state"):
        if not isinstance(saved[name], (numbers.Integral, type(None))):
            saved[name] = None
    config = {
        "parameters": {name: _as_json(value) for name, value in saved.items()},
        "keys": state.streams.to_file(),
        "n_presentations": state.n_presentations,
        "version": __version__,
        "format": FORMAT,
    }
    if state.input_spec.seen is not None:
        config["inputs"] = state.input_spec.seen._asdict()
    return config


def _as_json(value):
    """Return a parameter in a type that JSON knows: numbers may be of any type, such as a fraction."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def load_model(path: str | Path, defaults: Mapping[str, Any]) -> tuple[dict[str, Any], FittedState]:
    """Return the parameters and the state in a file or an exported folder (see `GLMClassifier.load`).

    Parameters
    ----------
    path : str or Path
    defaults : mapping
        The parameters that a classifier has, and their values where an older file lacks them.
    """
    path = as_path(path)
    if os.path.isdir(path):
        return _load_exported(path, defaults)
    with reading(path, "GLMClassifier.save"):
        return _restored(SavedModel.read(path, defaults), defaults)


def _restored(saved, defaults):
    parameters = _read_parameters(saved, defaults)
    settings = Settings.of(parameters)
    if _has_former_basis(settings.architecture, saved.basis):
        # So that `fit` uses the basis of the file
        parameters["basis"] = saved.basis
        settings = Settings.of(parameters)
    settings.check_rejection(saved.classes)
    state = FittedState(
        saved.learned,
        saved.basis,
        saved.classes,
        saved.streams,
        saved.n_presentations,
        saved.history,
        _read_spec(saved),
        saved.hidden_basis,
        saved.hidden_feedback,
        validation_scores=saved.validation_scores,
    )
    architecture = settings.architecture
    state.network(architecture)  # raises if it is too large
    if saved.input_range is not None:
        state.input_spec.scaled(saved.input_range, settings)  # raises unless scale_inputs is True
    elif settings.scale_inputs and saved.inputs_seen and saved.inputs_seen.kind != "trains":
        raise ValueError("it lacks 'input_range'")
    if saved.optimizer_state is not None:
        arrays = state.parameters_for(architecture).arrays_of_all
        optimizer_state = OptimizerState.from_vector(
            saved.optimizer_state, architecture.optimizer, 1, arrays
        )
        state = replace(state, optimizer_state=optimizer_state)
    return parameters, state


def _read_parameters(saved, defaults):
    parameters = {**defaults, **saved.parameters}
    parameters["optimizer"] = optimizer_from_file(parameters["optimizer"])
    for name in _BASES:
        if parameters[name] is not None:
            parameters[name] = CustomBasis(parameters[name])
    if isinstance(parameters["hidden"], list):
        parameters["hidden"] = tuple(parameters["hidden"])
    parameters["class_weight"] = class_weight_from_file(parameters["class_weight"], saved.classes)
    return parameters


def _read_spec(saved):
    input_range, names = saved.input_range, saved.feature_names
    return InputSpec(
        n_inputs=len(saved.learned.layers[0].weights),
        scaler=None if input_range is None else MinMaxScaler(clip=True).fit(input_range),
        seen=saved.inputs_seen,
        names=None if names is None else names.astype(object),
    )


def _has_former_basis(architecture, basis):
    """Return whether the basis of a file was the default once, but is not today."""
    if architecture.basis is not None or basis.matrix.shape[::-1] != architecture.default_size:
        return False
    return not np.array_equal(basis.matrix, architecture.make_basis().matrix)


def _load_exported(folder, defaults):
    if not os.path.isfile(folder / EXPORTED):
        raise ValueError(f"path: the folder {folder} was not written by GLMClassifier.export")
    with reading(folder, "GLMClassifier.export"):
        saved = SavedModel.read(folder / EXPORTED, defaults)
        parameters, before = _restored(saved, defaults)
        settings = Settings.of(parameters)
        learned, history, optimizer_state, run = get_device(settings.device).read_exported(
            before.network(settings.architecture), folder, saved.has_checksum
        )
        n_epochs, streams = len(history), before.streams
        if run:
            parameters = parameters_of_run(parameters, run, n_epochs)
            streams = replace(streams, train_inputs=int(run["input_key"]), order=int(run["order_key"]))
            n_presentations = int(run["first_presentation"]) + n_epochs * int(run["n_items"])
        else:  # programs of version 0.1 do not report their settings
            n_items = before.n_presentations // settings.training.n_epochs
            parameters["n_epochs"], n_presentations = n_epochs, n_epochs * n_items
        settings = Settings.of(parameters)
        if not learned.is_bounded(history):
            raise ValueError(
                f"its training diverged to parameters or log-likelihoods beyond {LARGEST:g}; reduce the "
                "learning_rate in job/settings.txt, or export again, and run `make run`"
            )
    return parameters, replace(
        before,
        parameters=learned,
        streams=streams,
        n_presentations=n_presentations,
        history=history[:, 0],
        optimizer_state=replace(optimizer_state, optimizer=settings.architecture.optimizer),
    )


def parameters_of_run(
    parameters: Mapping[str, Any], run: Mapping[str, str], n_epochs: int
) -> dict[str, Any]:
    """Return the parameters with the settings that the user may have changed in an exported project.

    Parameters
    ----------
    parameters : dict
        Of the classifier that was exported.
    run : dict of str
        The settings that the program used.
    n_epochs : int
        Epochs in its history.
    """
    settings, changed = Settings.of(parameters), dict(parameters)
    architecture, training, objective = settings.architecture, settings.training, settings.objective
    for name in ("n_epochs", "batch_size"):
        changed[name] = int(run[name])
    if int(run["target_period"]) != objective.period:
        changed["target_period"] = int(run["target_period"])
    start = int(run.get("target_start", 0)) or None  # older programs do not know it
    if start != objective.start:
        changed["target_start"] = start
    changed["learning_rate"] = float(run["learning_rate"])
    # 0.1 did not have these
    changed["weight_decay"] = float(run.get("weight_decay", 0))
    n_averaged = int(run.get("n_averaged", 0))
    if n_averaged != Settings.of(changed).training.n_averaged:
        changed["average"] = n_averaged / changed["n_epochs"]
    schedule = run.get("learning_rate_schedule", "function")
    if run.get("rate_schedule") == "0":  # an older program
        schedule = "constant"
    if schedule not in ("function", training.schedule.name):
        changed["learning_rate_schedule"] = schedule
    if "clip_norm" in run:  # older programs know neither
        changed["clip_norm"] = float(run["clip_norm"]) or None
        values = [float(value) for value in run["optimizer_settings"].split(",")]
        optimizer = architecture.optimizer.with_settings(values)
        if optimizer != architecture.optimizer:
            changed["optimizer"] = optimizer
    if run.get("weighted") == "0":
        changed["class_weight"] = None
    adversarial = from_job(run)
    if adversarial != training.adversarial:
        changed["adversarial"] = adversarial and adversarial.settings
    if changed["n_epochs"] != n_epochs:
        raise ValueError(f"job/history.bin must hold {changed['n_epochs']} epochs, got {n_epochs}")
    return changed
