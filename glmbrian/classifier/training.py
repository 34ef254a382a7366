"""Training of one classifier, or of several at once on the same input spikes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..devices import get_device
from ..devices.problem import Inputs, Network, Parameters, Training, state_of_replicas
from ..support.progress import Progress
from .fitted_state import FittedState
from .input_range import InputRange
from .inputs import InputSpec
from .labels import (
    as_labels,
    check_classes,
    check_known,
    check_labels,
    check_weights,
    indices,
    weighted_by_class,
)
from .settings import Settings
from .start import make_start
from .streams import Streams


@dataclass(frozen=True)
class Prepared:
    """Everything a device needs to train one or more classifiers, after all checks.

    device : str
    network : Network
        The network of one replica.
    starts : list of Parameters
        Parameters of each classifier before training.
    streams : list of Streams
        Random numbers of each classifier. They differ only in the start.
    inputs : Inputs
    labels : ndarray of int, shape (n,)
    classes : ndarray, shape (n_classes,)
    training : Training
    spec : InputSpec
    verbose : bool
    """

    device: str
    network: Network
    starts: list[Parameters]
    streams: list[Streams]
    inputs: Inputs
    labels: NDArray[np.int64]
    classes: np.ndarray
    training: Training
    spec: InputSpec
    verbose: bool

    def of_replicas(self, replicas: slice) -> "Prepared":
        """Return what a slice of the classifiers needs."""
        return replace(
            self,
            starts=self.starts[replicas],
            streams=self.streams[replicas],
            training=self.training.of_replicas(replicas),
        )

    @property
    def n_presentations(self) -> int:
        """Number of presentations after this training, including those of earlier training."""
        training = self.training
        return training.first_presentation + training.n_epochs * len(self.inputs)

    def state(self, replica: int = 0, **learned) -> FittedState:
        """Return the state of a classifier after this training, or before it by default."""
        before = dict(parameters=self.starts[replica], history=np.empty(0))
        return FittedState(
            **{**before, **learned},
            basis=self.network.basis,
            classes=self.classes,
            streams=self.streams[replica],
            n_presentations=self.n_presentations,
            inputs=self.spec,
            hidden_basis=self.network.hidden.basis,
            hidden_feedback=self.network.hidden.feedback_basis,
        )


def prepare(
    members: Sequence[Settings],
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    one_row_each: bool = False,
    owner: str = "GLMClassifier",
    before: InputRange | None = None,
) -> Prepared:
    """Check the arguments, and return everything needed to train from the start.

    Parameters
    ----------
    members : list of Settings
        Of each classifier.  They may differ only in learning rate, start, and `verbose`.
    X, y
        See `GLMClassifier.fit`.
    sample_weight : array_like of float, shape (n,), optional
    classes : array_like, optional
        All class labels, by default those in `y`.
    one_row_each : bool
        Whether `sample_weight` has the shape (n_classifiers, n).
    owner, before
        See `InputSpec.fit`.

    Returns
    -------
    Prepared
    """
    first = members[0]
    basis = first.architecture.make_basis()
    spec, inputs = InputSpec.fit(X, first, owner, before)
    if classes is None:
        known, labels = check_labels(y, len(inputs))
    else:
        known = check_classes(as_labels(classes, name="classes")[0], "classes")
        labels = indices(check_known(y, len(inputs), known, "classes"), known)
    first.check_rejection(known)
    shape = (len(members), len(inputs)) if one_row_each else (len(inputs),)
    weights = check_weights(sample_weight, shape)
    network = first.architecture.network(inputs.n_inputs, len(known), basis)
    # Drawing changes the user's random state, so do it only after all checks.
    shared = Streams.derive(first.training.random_state)
    streams = [shared.starting_from(member.training.start_state) for member in members]
    starts = [make_start(member.training, network, own.start) for member, own in zip(members, streams)]
    training = _training(members, shared, weights, labels, known)
    training = replace(training, n_averaged=first.training.n_averaged)
    return Prepared(
        first.device, network, starts, streams, inputs, labels, known, training, spec, first.verbose
    )


def prepare_more(
    settings: Settings,
    state: FittedState,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
) -> Prepared:
    """Check the arguments, and return everything needed to train a fitted classifier further."""
    known = state.classes
    settings.check_rejection(known)
    spec, inputs = state.input_spec.transform(X, settings)
    if classes is not None:
        named, kind = as_labels(classes, name="classes")
        same_kind = kind == as_labels(known, name="classes_")[1]
        if not same_kind or set(named.tolist()) != set(known.tolist()):
            raise ValueError(
                f"classes={named.tolist()} is not the same as before, classes_={known.tolist()}"
            )
    labels = indices(check_known(y, len(inputs), known, "classes_"), known)
    weights = check_weights(sample_weight, (len(inputs),))
    training = replace(
        _training([settings], state.streams, weights, labels, known),
        first_presentation=state.n_presentations,
        state=state.optimizer_state,
    )
    return Prepared(
        settings.device,
        state.network(settings.architecture),
        [state.parameters_for(settings.architecture)],
        [state.streams],
        inputs,
        labels,
        known,
        training,
        spec,
        settings.verbose,
    )


def train(prepared: Prepared, n_jobs: int = 1) -> list[FittedState]:
    """Train classifiers, and return what each has learned.

    Parameters
    ----------
    prepared : Prepared
    n_jobs : int
        Number of processes that share the classifiers, if the device can do so.

    Raises
    ------
    ValueError
        If training diverges.
    RuntimeError
        If there is no C++ compiler, or compiling or running fails.
    """
    device, n = get_device(prepared.device), len(prepared.starts)
    n_jobs = n_jobs if device.is_concurrent else 1
    at_once = n_jobs if prepared.training.has_own_spikes(prepared.network) else n
    parts = [slice(start, start + at_once) for start in range(0, n, at_once)]
    return [
        state for part in parts for state in _train_part(device, prepared.of_replicas(part), n_jobs)
    ]


def _train_part(device, prepared, n_jobs):
    training, n_replicas = prepared.training, len(prepared.starts)
    network = replace(prepared.network, n_replicas=n_replicas, n_jobs=n_jobs)
    start = Parameters.joined(prepared.starts)
    n_presentations = training.n_epochs * len(prepared.inputs)
    with Progress("training", n_presentations, prepared.verbose) as progress:
        trained = device.train(network, start, prepared.inputs, prepared.labels, training, progress)
    trained.parameters.raise_if_diverged(trained.history, training)
    for replica in range(n_replicas):
        own = slice(replica, replica + 1)
        # Copies, because the parameters of a replica are views of arrays that all replicas share.
        yield prepared.state(
            replica,
            parameters=trained.parameters.of_replicas(own, network).copy(),
            history=trained.history[:, replica],
            timing=trained.timing,
            optimizer_state=state_of_replicas(trained.state, own, network).copy(),
        )


def _training(members, streams, sample_weight, labels, classes):
    config = members[0].training
    weights = weighted_by_class(sample_weight, config.class_weight, labels, classes)
    if weights is not None:
        weights = np.broadcast_to(weights, (len(members), len(labels)))
    return Training(
        learning_rates=np.array([member.training.learning_rate for member in members]),
        n_epochs=config.n_epochs,
        batch_size=config.batch_size,
        input_key=streams.train_inputs,
        order_key=streams.order,
        output_key=streams.train_outputs,
        sample_weights=weights,
        schedule=config.schedule,
        n_planned=config.n_epochs * len(labels),
        weight_decay=config.weight_decay,
        clip_norm=config.clip_norm,
        adversarial=config.adversarial,
    )
