"""Training of one classifier, or of several at once on the same input spikes."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import MinMaxScaler

from ..core.adversarial import get_adversarial
from ..core.credit import get_credit
from ..core.schedules import get_schedule
from ..devices import get_device
from ..devices.problem import (
    HiddenLayers,
    Inputs,
    LayerParameters,
    Network,
    Parameters,
    Training,
    state_of_replicas,
)
from ..support.progress import Progress
from .input_range import InputRange
from .inputs import check_first_inputs, check_inputs
from .labels import (
    as_labels,
    check_classes,
    check_known,
    check_labels,
    check_weights,
    indices,
    weighted_by_class,
)
from .learned import Learned
from .settings import (
    check_rejection,
    check_settings,
    make_basis,
    make_hidden,
    make_network,
    make_start,
    n_averaged_epochs,
)
from .streams import Streams

if TYPE_CHECKING:
    from .classifier import GLMClassifier


@dataclass(frozen=True)
class Prepared:
    """Everything a device needs to train one or more classifiers, after all checks.

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
    scaler : MinMaxScaler, optional
    inputs_seen : InputRange, optional
    feature_names : ndarray of str, shape (n_inputs,), optional
    """

    network: Network
    starts: list[Parameters]
    streams: list[Streams]
    inputs: Inputs
    labels: NDArray[np.int64]
    classes: np.ndarray
    training: Training
    scaler: MinMaxScaler | None
    inputs_seen: InputRange | None
    feature_names: np.ndarray | None

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


def prepare(
    classifiers: Sequence["GLMClassifier"],
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    one_row_each: bool = False,
) -> Prepared:
    """Check the arguments, and return everything needed to train from the start.

    Parameters
    ----------
    classifiers : list of GLMClassifier
        They may differ only in learning rate, start, and `verbose`.
    X, y
        See `GLMClassifier.fit`.
    sample_weight : array_like of float, shape (n,), optional
    classes : array_like, optional
        All class labels, by default those in `y`.
    one_row_each : bool
        Whether `sample_weight` has the shape (n_classifiers, n).

    Returns
    -------
    Prepared
    """
    for classifier in classifiers:
        check_settings(classifier)
    first = classifiers[0]
    basis = make_basis(first)
    inputs = check_first_inputs(first, X)
    if classes is None:
        known, labels = check_labels(y, len(inputs))
    else:
        known = check_classes(as_labels(classes, name="classes")[0], "classes")
        labels = indices(check_known(y, len(inputs), known, "classes"), known)
    check_rejection(first, known)
    shape = (len(classifiers), len(inputs)) if one_row_each else (len(inputs),)
    weights = check_weights(sample_weight, shape)
    network = make_network(first, inputs.n_inputs, len(known), basis, make_hidden(first))
    # Drawing changes the user's random state, so do it only after all checks.
    shared = Streams.derive(first.random_state)
    streams = [shared.starting_from(classifier.start_state) for classifier in classifiers]
    starts = [
        make_start(classifier, network, own.start) for classifier, own in zip(classifiers, streams)
    ]
    training = _training(classifiers, shared, weights, labels, known)
    training = replace(training, n_averaged=n_averaged_epochs(first))
    return Prepared(network, starts, streams, inputs, labels, known, training, **_seen(first))


def prepare_more(
    classifier: "GLMClassifier",
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
) -> Prepared:
    """Check the arguments, and return everything needed to train a fitted classifier further."""
    check_settings(classifier)
    known = classifier.classes_
    check_rejection(classifier, known)
    inputs = check_inputs(classifier, X, learns=True)
    if classes is not None:
        named, kind = as_labels(classes, name="classes")
        same_kind = kind == as_labels(known, name="classes_")[1]
        if not same_kind or set(named.tolist()) != set(known.tolist()):
            raise ValueError(
                f"classes={named.tolist()} is not the same as before, classes_={known.tolist()}"
            )
    labels = indices(check_known(y, len(inputs), known, "classes_"), known)
    weights = check_weights(sample_weight, (len(inputs),))
    network = fitted_network(classifier)
    streams = classifier.streams_
    training = _training([classifier], streams, weights, labels, known)
    training = replace(
        training,
        first_presentation=classifier.n_presentations_,
        state=getattr(classifier, "optimizer_state_", None),
    )
    start = learned_parameters(classifier)
    seen = _seen(classifier)
    return Prepared(network, [start], [streams], inputs, labels, known, training, **seen)


def learned_parameters(classifier: "GLMClassifier") -> Parameters:
    """Return the `Parameters` of a fitted classifier."""
    feedback = classifier.feedback_
    if not classifier.objective.learns_feedback:
        feedback = feedback[:, :0]
    hidden = tuple(
        LayerParameters(layer.weights, layer.feedback, layer.bias)
        for layer in classifier.hidden_layers_
    )
    return Parameters(classifier.weights_, feedback, classifier.bias_, hidden)


def fitted_network(classifier: "GLMClassifier") -> Network:
    """Return the `Network` of a fitted classifier."""
    layers = classifier.hidden_layers_
    hidden = HiddenLayers(
        tuple(len(layer.bias) for layer in layers),
        layers[0].basis if layers else None,
        layers[0].feedback_basis if layers else None,
        get_credit(classifier.credit),
    )
    n_classes = len(classifier.classes_)
    return make_network(classifier, classifier.n_features_in_, n_classes, classifier.basis_, hidden)


def train(classifiers: Sequence["GLMClassifier"], prepared: Prepared, n_jobs: int = 1) -> None:
    """Train the classifiers, and store in each what it has learned.

    Parameters
    ----------
    classifiers : list of GLMClassifier
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
    device = get_device(classifiers[0].device)
    n_jobs = n_jobs if device.is_concurrent else 1
    has_own_spikes = prepared.training.has_own_spikes(prepared.network)
    at_once = n_jobs if has_own_spikes else len(classifiers)
    for start in range(0, len(classifiers), at_once):
        part = slice(start, start + at_once)
        _train_part(device, classifiers[part], prepared.of_replicas(part), n_jobs)


def _train_part(device, classifiers, prepared, n_jobs):
    first, training = classifiers[0], prepared.training
    network = replace(prepared.network, n_replicas=len(classifiers), n_jobs=n_jobs)
    start = Parameters.joined(prepared.starts)
    n_presentations = training.n_epochs * len(prepared.inputs)
    with Progress("training", n_presentations, first.verbose) as progress:
        trained = device.train(network, start, prepared.inputs, prepared.labels, training, progress)
    trained.parameters.check_moderate(trained.history, training)
    for replica, (classifier, streams) in enumerate(zip(classifiers, prepared.streams)):
        own = slice(replica, replica + 1)
        classifier.adopt(
            Learned(
                # Copy, because the parameters of a replica are views of arrays that all replicas share.
                trained.parameters.of_replicas(own, network).copy(),
                prepared.network.basis,
                prepared.classes,
                streams,
                prepared.n_presentations,
                trained.history[:, replica],
                trained.timing,
                prepared.scaler,
                prepared.inputs_seen,
                prepared.feature_names,
                prepared.network.hidden.basis,
                prepared.network.hidden.feedback_basis,
                optimizer_state=state_of_replicas(trained.state, own, network).copy(),
            )
        )


@contextmanager
def unchanged_on_error(classifiers: Sequence["GLMClassifier"]) -> Iterator[None]:
    """Restore the classifiers if the body of the ``with`` statement raises."""
    with ExitStack() as stack:
        for classifier in classifiers:
            stack.enter_context(_unchanged_on_error(classifier))
        yield


@contextmanager
def _unchanged_on_error(classifier):
    # A shallow copy is enough: learned arrays are replaced, never changed in place.
    before = dict(vars(classifier))
    try:
        yield
    except BaseException:
        vars(classifier).clear()
        vars(classifier).update(before)
        raise


def _seen(classifier) -> dict[str, Any]:
    """Return what the check of the inputs left in the classifier, for `Prepared`."""
    return {
        "scaler": classifier.scaler_,
        "inputs_seen": classifier.inputs_seen_,
        "feature_names": getattr(classifier, "feature_names_in_", None),
    }


def _training(classifiers, streams, sample_weight, labels, classes):
    first = classifiers[0]
    weights = weighted_by_class(sample_weight, first.class_weight, labels, classes)
    if weights is not None:
        weights = np.broadcast_to(weights, (len(classifiers), len(labels)))
    return Training(
        learning_rates=np.array([member.learning_rate for member in classifiers], dtype=float),
        n_epochs=int(first.n_epochs),
        batch_size=int(first.batch_size),
        input_key=streams.train_inputs,
        order_key=streams.order,
        output_key=streams.train_outputs,
        sample_weights=weights,
        schedule=get_schedule(first.learning_rate_schedule),
        n_planned=int(first.n_epochs) * len(labels),
        weight_decay=float(first.weight_decay),
        clip_norm=None if first.clip_norm is None else float(first.clip_norm),
        adversarial=get_adversarial(first.adversarial),
    )
