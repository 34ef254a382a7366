"""Training of one classifier, or of several at once on the same input spikes."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..devices import get_device
from ..devices.problem import Inputs, Network, Parameters, Training
from ..support.progress import Progress
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
from .settings import check_rejection, check_settings, make_basis, make_network, make_start
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
    """

    network: Network
    starts: list[Parameters]
    streams: list[Streams]
    inputs: Inputs
    labels: NDArray[np.int64]
    classes: np.ndarray
    training: Training

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
    network = make_network(first, inputs.n_inputs, len(known), basis)
    # Drawing changes the user's random state, so do it only after all checks.
    shared = Streams.derive(first.random_state)
    streams = [shared.starting_from(classifier.start_state) for classifier in classifiers]
    starts = [
        make_start(classifier, network, own.start) for classifier, own in zip(classifiers, streams)
    ]
    training = _training(classifiers, shared, weights, labels, known)
    return Prepared(network, starts, streams, inputs, labels, known, training)


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
    network = make_network(classifier, inputs.n_inputs, len(known), classifier.basis_)
    streams = classifier.streams_
    training = _training([classifier], streams, weights, labels, known)
    training = replace(training, first_presentation=classifier.n_presentations_)
    start = learned_parameters(classifier)
    return Prepared(network, [start], [streams], inputs, labels, known, training)


def learned_parameters(classifier: "GLMClassifier") -> Parameters:
    """Return the `Parameters` of a fitted classifier."""
    feedback = classifier.feedback_
    if not classifier.objective.learns_feedback:
        feedback = feedback[:, :0]
    return Parameters(classifier.weights_, feedback, classifier.bias_)


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
    first, training = classifiers[0], prepared.training
    device = get_device(first.device)
    network = replace(
        prepared.network,
        n_replicas=len(classifiers),
        n_jobs=n_jobs if device.is_concurrent else 1,
    )
    start = Parameters.joined(prepared.starts)
    n_presentations = training.n_epochs * len(prepared.inputs)
    with Progress("training", n_presentations, first.verbose) as progress:
        parameters, history, timing = device.train(
            network, start, prepared.inputs, prepared.labels, training, progress
        )
    parameters.check_moderate(history, training)
    for replica, (classifier, streams) in enumerate(zip(classifiers, prepared.streams)):
        classifier.adopt(
            Learned(
                # Copy, because the parameters of a replica are views of arrays that all replicas share.
                parameters.of_replicas(slice(replica, replica + 1), network).copy(),
                prepared.network.basis,
                prepared.classes,
                streams,
                prepared.n_presentations,
                history[:, replica],
                timing,
                first.scaler_,
                first.inputs_seen_,
                getattr(first, "feature_names_in_", None),
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
    )
