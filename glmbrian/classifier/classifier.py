"""The classifier: a two-layer network of GLM neurons with scikit-learn's interface."""

import html
import json
import numbers
from contextlib import contextmanager
from dataclasses import asdict, replace

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.validation import validate_data

from .._version import __version__
from ..core.activations import get_activation, name_to_save
from ..core.bases import CustomBasis, RaisedCosineBasis, as_basis
from ..core.objectives import check_objective, get_objective, objective_to_save
from ..core.decisions import ON_SILENCE, ON_TIE, REJECTED, Decisions, decide, is_silent, measures
from ..devices import DEVICES, exporting_devices, get_device, recording_device
from ..core.rate_code import check_intensities, warn_of_small_integers
from .input_range import SMALL_INTEGERS, InputRange, warn_of_clipping
from .labels import (
    as_labels,
    check_class_weight,
    check_classes,
    check_known,
    check_labels,
    check_weights,
    class_weight_from_file,
    class_weight_to_save,
    indices,
    weighted_by_class,
)
from ..devices.problem import LARGEST, Inputs, Network, Outcome, Parameters, Testing, Training
from ..support.progress import Progress
from ..core.randomness import check_random_state, derive_keys, mix64
from .saved_model import SavedModel
from ..support.storage import FORMAT, as_path, new_folder, reading, save_npz
from ..support.validation import (
    binary_array,
    check_size,
    choice,
    finite_array,
    flag,
    integer,
    plain_array,
    real,
    warn,
)

#: The paper's choices, for ``GLMClassifier(**PAPER_SETTINGS)``.  From this start
#: and at this rate some seeds end in a bad optimum (see docs/design.md).
PAPER_SETTINGS = {
    "learning_rate": 1e-3,
    "n_epochs": 200,
    "batch_size": 1,
    "weight_scale": 1.0,
    "bias_init": "uniform",
}

#: Independent streams of random numbers that one `random_state` gives.
_PURPOSES = range(10, 16)
_TRAIN_INPUTS, _ORDER, _START, _TEST_INPUTS, _TEST_OUTPUTS, _CHOICES = _PURPOSES

#: The largest 32-bit integer: Brian's integers and the sizes in C++ end here.
_MOST = 2**31 - 1

#: Smaller arrays than this are hardly images.
_SMALLEST_IMAGE = 8

#: The classifier before training, in an exported folder.
_EXPORTED = "classifier.npz"


def _count(value, name):
    """Return `value` as an ``int`` that C++ can hold."""
    return integer(integer(value, name), name, 1, _MOST)


class GLMClassifier(ClassifierMixin, BaseEstimator):
    """Spiking classifier trained by maximum likelihood, one output neuron a class.

    Inputs are rate encoded (see `RateEncoder`) for `n_steps` steps and drive
    `GLMNeurons`.  First-to-spike training maximises the probability that the
    right neuron spikes first (eq. first_spk_method_2); rate training that of a
    desired train, one spike every `target_period` steps at the right neuron and
    none elsewhere (eq. LL_conv).

    Parameters
    ----------
    decoding : {"first-to-spike", "rate"} or Objective
        What training maximises, and how a test decides; see `Objective` for one of your own.
    n_steps : int
        Steps of a presentation (the paper's T).
    n_basis : int
        Functions of the raised-cosine basis (K).
    window : int, optional
        Lags of the kernels; by default the larger of `n_steps` and `n_basis`.
    learning_rate : float
    n_epochs : int
    batch_size : int
        An update is `learning_rate` times the mean gradient of a batch.
    weight_scale : float
        Weights start uniform between plus and minus this.
    bias_init : float or "uniform"
        All biases start at this value, or uniform between -1 and 1.
    activation : {"sigmoid", "probit", "cloglog"} or Activation
    target_period : int
        Period of the desired train in rate training.
    device : {"cpp_standalone", "runtime", "genn"}
        Compile training and testing to C++ programs; or let Brian simulate in
        Python, on the target that ``brian2.prefs.codegen.target`` names (if it is
        "auto", in NumPy where that is done before Cython code would be compiled); or
        compile them with GeNN (see `gpu`).
    on_silence : {"potential", "random", "reject"}
        Without any output spike decide for the neuron with the highest membrane
        potential, for any, or for none (label -1).
    on_tie : {"potential", "random"}
        Between neurons that spike first in the same step, or equally often.
    gpu : bool, optional
        Whether the GeNN device uses a GPU; by default where CUDA is found.
    basis : Basis, optional
        A basis to use in place of the raised cosines; sets `n_basis` and `window`.
    random_state : None, int, RandomState or Generator
        The same integer gives the same spike trains, hence the same parameters,
        on every device.
    start_state : None, int, RandomState or Generator
        Fixes where the parameters start, apart from the spike trains; by default
        `random_state` does.
    verbose : bool
        Show a progress bar if a job takes more than a second.
    scale_inputs : bool
        Take features of any range, and scale each from the range that it has in
        training to intensities from 0 to 1; what lies beyond is clipped.  By default
        `X` must hold intensities already.  Spike trains are never scaled.
    class_weight : None, "balanced" or dict, optional
        Weights of classes in training, which multiply those of presentations: a mapping of
        labels to weights (classes that it leaves out have the weight 1), or "balanced" for
        ``n / (n_classes * n_of_the_class)``, in which presentations count by `sample_weight`.

    Attributes
    ----------
    weights_ : ndarray of float, shape (n_inputs, n_classes, n_basis)
    feedback_ : ndarray of float, shape (n_classes, n_basis)
        Feedback weights; first-to-spike decoding does without and leaves zeros.
    bias_ : ndarray of float, shape (n_classes,)
    classes_ : ndarray, shape (n_classes,)
    basis_ : Basis
    history_ : ndarray of float, shape (n_epochs,)
        Mean log-likelihood of the presentations of each epoch.
    n_presentations_ : int
        Presentations learned from so far, where `partial_fit` goes on numbering.
    scaler_ : sklearn.preprocessing.MinMaxScaler or None
        What `scale_inputs` scales with.
    inputs_seen_ : glmbrian.classifier.input_range.InputRange or None
        The kind of inputs in training and the largest intensity, used to notice inputs on
        another scale later; None for a model of version 0.1.
    timing_ : dict
        ``build_seconds``, ``run_seconds``, ``presentations`` and ``steps`` of the
        latest training or test run (`evaluate`, `score`), and for a compiled program
        ``peak_memory`` in bytes.
    decisions_ : glmbrian.core.decisions.Decisions
        What the latest `evaluate` or `score` saw of each presentation; not saved.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, shape (n_inputs,)
        Names of the columns, if `X` had any in training.

    Examples
    --------
    >>> import glmbrian as glm
    >>> mnist = glm.datasets.load_mnist((5, 7), n_train=20, n_test=20)
    >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=4, n_epochs=3,
    ...                                device="runtime", random_state=0)
    >>> classifier.fit(mnist.X_train, mnist.y_train).score(mnist.X_test, mnist.y_test) > 0.6
    True
    """

    # Until `_prepare` has seen inputs; `fit_ensemble` does not call it for each member.
    scaler_ = inputs_seen_ = None

    def __init__(
        self,
        decoding="first-to-spike",
        n_steps=8,
        n_basis=8,
        window=None,
        learning_rate=1e-2,
        n_epochs=20,
        batch_size=1,
        weight_scale=0.01,
        bias_init=-5.0,
        activation="sigmoid",
        target_period=4,
        device="cpp_standalone",
        on_silence="potential",
        on_tie="potential",
        gpu=None,
        basis=None,
        random_state=None,
        start_state=None,
        verbose=True,
        scale_inputs=False,
        class_weight=None,
    ):
        self.decoding = decoding
        self.n_steps = n_steps
        self.n_basis = n_basis
        self.window = window
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.weight_scale = weight_scale
        self.bias_init = bias_init
        self.activation = activation
        self.target_period = target_period
        self.device = device
        self.on_silence = on_silence
        self.on_tie = on_tie
        self.gpu = gpu
        self.basis = basis
        self.random_state = random_state
        self.start_state = start_state
        self.verbose = verbose
        self.scale_inputs = scale_inputs
        self.class_weight = class_weight

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = not self.scale_inputs
        # For data of two features, on which scikit-learn's checks want an accuracy of
        # 0.83: in a few steps two inputs have too few spikes to tell that much.
        tags.classifier_tags.poor_score = True
        return tags

    def __repr__(self, N_CHAR_MAX=700):
        text = super().__repr__(N_CHAR_MAX)
        return f"{text} {self._fitted_to()}" if self._is_fitted() else text

    # What notebooks show: scikit-learn's picture, and a line about what was learned.

    @property
    def _repr_html_(self):
        without = super()._repr_html_  # raises AttributeError if scikit-learn is set to show text
        return lambda: without() + self._html_line()

    def _repr_mimebundle_(self, **options):
        bundle = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] += self._html_line()
        return bundle

    def _html_line(self):
        state = self._fitted_to() if self._is_fitted() else "not fitted"
        return f"<p>{html.escape(state)}</p>"

    def _fitted_to(self):
        labels = self.classes_.tolist()
        listed = ", ".join(map(repr, labels[:10])) + (", ..." if len(labels) > 10 else "")
        return f"fitted to {self.n_features_in_} inputs and {len(labels)} classes ({listed})"

    @property
    def objective(self):
        """The `Objective` that `decoding` stands for."""
        return get_objective(self.decoding, int(self.target_period), "decoding")

    # ------------------------------------------------------------------ learning

    def fit(self, X, y, sample_weight=None):
        """Train on presentations `X` of the classes `y`.

        Parameters
        ----------
        X : array_like, shape (n, n_inputs) or (n, n_steps, n_inputs)
            Intensities, integers from 0 to 255 or real numbers from 0 to 1 (with
            `scale_inputs` any finite numbers); or ready-made spike trains of 0 and 1.
        y : array_like, shape (n,)
            Class labels.
        sample_weight : array_like of float, shape (n,), optional
            The gradient of each presentation is multiplied by its weight; those of
            weight 0 do not count into the mean of a batch.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If a parameter or an array is not valid (before anything is compiled), or if
            training diverges.
        RuntimeError
            If there is no C++ compiler, or compiling or running fails.  Whatever the
            error, the classifier is as it was before.

        Examples
        --------
        Six inputs that spike on the left, and six on the right:

        >>> import numpy as np, glmbrian as glm
        >>> from brian2 import prefs
        >>> prefs.codegen.target = "numpy"
        >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 10, 6, axis=1)
        >>> y = ["left", "right"] * 10
        >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=3, learning_rate=0.1,
        ...                                device="runtime", random_state=1)
        >>> classifier = classifier.fit(X, y)
        >>> classifier.weights_.shape
        (12, 2, 2)
        >>> bool(classifier.history_[0] < classifier.history_[-1])
        True
        """
        with self._unchanged_on_error():
            self._train(*self._prepare(X, y, sample_weight))
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Train for one more epoch, on the presentations `X` of the classes `y`.

        The first call starts as `fit` does.  Later ones, and those after `fit` or
        `load`, go on from what has been learned: presentations are numbered on, so
        each is encoded by fresh spikes.  Calls on the same data learn what `fit`
        learns in as many epochs.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.  `y` need not hold all classes.  With `scale_inputs` the range
            of each feature is that of the first call.
        classes : array_like, optional
            All classes that will ever be seen.  Needed by the first call; later it may
            be left out.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            As for `fit`; or if `classes` is missing in the first call or not that of
            earlier ones, or `y` holds other labels.
        RuntimeError
            As for `fit`.

        Examples
        --------
        >>> import glmbrian as glm
        >>> digits = glm.datasets.load_mnist((5, 7), n_train=20, n_test=20)
        >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, device="runtime", random_state=0)
        >>> for part in (slice(0, 30), slice(30, 40)):
        ...     X, y = digits.X_train[part], digits.y_train[part]
        ...     classifier = classifier.partial_fit(X, y, classes=[5, 7])
        >>> classifier.n_presentations_, classifier.history_.shape
        (40, (2,))
        """
        is_first = not self._is_fitted()
        if is_first and classes is None:
            raise ValueError(
                "classes must be passed on the first call to partial_fit, all that will ever be seen"
            )
        with self._unchanged_on_error():
            if isinstance(self.class_weight, str) and self.class_weight == "balanced":
                raise ValueError(
                    "class_weight='balanced' needs all presentations, but partial_fit sees only some; "
                    "use a mapping of labels to weights, such as those that "
                    "sklearn.utils.class_weight.compute_class_weight computes"
                )
            if is_first:
                prepared = self._prepare(X, y, sample_weight, classes)
            else:
                prepared = self._prepare_more(X, y, sample_weight, classes)
            network, training, *rest = prepared
            earlier = [] if is_first else self.history_
            self._train(network, replace(training, n_epochs=1), *rest)
            self.history_ = np.concatenate([earlier, self.history_])
        return self

    def _train(self, network, training, inputs, labels, classes, start):
        n_presentations = training.n_epochs * len(inputs)
        with self._progress("training", n_presentations) as progress:
            parameters, history, timing = get_device(self.device).train(
                network, start, inputs, labels, training, progress
            )
        parameters.check_moderate(history, training)
        n_presentations += training.first_presentation
        self._set_learned(parameters, network, classes, n_presentations)
        self.history_ = history[:, 0]
        self.timing_ = asdict(timing)

    @contextmanager
    def _unchanged_on_error(self):
        # What is learned is replaced and never changed in place.
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def export(self, X, y, directory):
        """Write a project that does what `fit` would, and builds and runs by itself.

        ``make run`` in the folder compiles and trains; `load` and ``glmbrian
        evaluate`` then read the folder.

        Parameters
        ----------
        X, y
            As for `fit`.
        directory : str or Path
            A new or empty folder, or one that a stopped export has left unfinished.

        Raises
        ------
        OSError
            If `directory` cannot be written; nothing is left behind.
        TypeError, ValueError
            As for `fit`, or if `directory` is not empty or `device` cannot export.

        Examples
        --------
        >>> import os, tempfile
        >>> import glmbrian as glm
        >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, device="cpp_standalone")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     classifier.export([[1.0, 0.0], [0.0, 1.0]], ["left", "right"], folder)
        ...     {"Makefile", "main.cpp"} <= set(os.listdir(folder))
        True
        """
        choice(self.device, "device (of an export)", exporting_devices())
        untrained = clone(self)
        name_to_save(self.activation)
        objective_to_save(self.objective)
        network, training, inputs, labels, classes, start = untrained._prepare(X, y)
        untrained._set_learned(start, network, classes, training.n_epochs * len(inputs))
        untrained.history_ = np.empty(0)
        with new_folder(directory, "directory") as folder:
            get_device(self.device).export(network, start, inputs, labels, training, folder)
            untrained.save(folder / _EXPORTED)

    def _prepare(self, X, y, sample_weight=None, classes=None, n_replicas=None):
        """Check everything, and return what a device needs to train anew.

        By default `classes` are those in `y`.  With `n_replicas`, `sample_weight` has one row
        per replica.
        """
        self._check_parameters()
        basis = self._make_basis()
        inputs, n_inputs = self._check_inputs(X, is_first=True)
        if classes is None:
            classes, labels = check_labels(y, len(inputs))
        else:
            classes = check_classes(as_labels(classes, name="classes")[0], "classes")
            labels = indices(check_known(y, len(inputs), classes, "classes"), classes)
        self._check_reject(classes)
        weights = self._weights(sample_weight, labels, classes, n_replicas)
        # Only now, after all checks, may anything be drawn from a random state.
        self._keys = derive_keys(self.random_state, *_PURPOSES)
        network = self._network(n_inputs, len(classes), basis)
        return network, self._training(weights), inputs, labels, classes, self._start(network)

    def _prepare_more(self, X, y, sample_weight, classes):
        """Check everything, and return what a device needs to train on."""
        network, inputs = self._checked_test(X, learns=True)
        known = self.classes_
        if classes is not None:
            classes, kind = as_labels(classes, name="classes")
            same_kind = kind == as_labels(known, name="classes_")[1]
            if not same_kind or set(classes.tolist()) != set(known.tolist()):
                raise ValueError(
                    f"classes={classes.tolist()} is not the same as before, classes_={known.tolist()}"
                )
        labels = indices(check_known(y, len(inputs), known, "classes_"), known)
        weights = self._weights(sample_weight, labels, known)
        training = replace(self._training(weights), first_presentation=self.n_presentations_)
        return network, training, inputs, labels, known, self._parameters()

    def _weights(self, sample_weight, labels, classes, n_replicas=None):
        """Return the weights of presentations, one row per replica, or None if all are 1."""
        n = len(labels)
        weights = check_weights(sample_weight, (n,) if n_replicas is None else (n_replicas, n))
        weights = weighted_by_class(weights, self.class_weight, labels, classes)
        return None if weights is None else np.broadcast_to(weights, (n_replicas or 1, n))

    def _training(self, weights):
        return Training(
            learning_rates=np.array([self.learning_rate], dtype=float),
            n_epochs=int(self.n_epochs),
            batch_size=int(self.batch_size),
            input_key=self._keys[0],
            order_key=self._keys[1],
            # other draws than those of tests
            output_key=int(mix64(self._keys[4])),
            sample_weights=weights,
        )

    def _check_parameters(self):
        check_objective(self.decoding, "decoding")
        for name in ("n_steps", "n_epochs", "batch_size", "target_period"):
            _count(getattr(self, name), name)
        if self.basis is not None:
            as_basis(self.basis, "basis")
        else:
            _count(self.n_basis, "n_basis")
            if self.window is not None:
                _count(self.window, "window")
        real(self.learning_rate, "learning_rate", 0, strict=True)
        real(self.weight_scale, "weight_scale", 0, LARGEST)
        if not (isinstance(self.bias_init, str) and self.bias_init == "uniform"):
            real(self.bias_init, "bias_init (unless it is 'uniform')", -LARGEST, LARGEST)
        get_activation(self.activation)
        choice(self.device, "device", DEVICES)
        if self.gpu is not None:
            flag(self.gpu, "gpu", "None, True or False")
        choice(self.on_silence, "on_silence", ON_SILENCE)
        choice(self.on_tie, "on_tie", ON_TIE)
        flag(self.scale_inputs, "scale_inputs")
        if not isinstance(self.verbose, (numbers.Integral, np.bool_)):
            raise TypeError(f"verbose must be True or False, got {self.verbose!r}")
        check_random_state(self.random_state)
        check_random_state(self.start_state, "start_state")
        check_class_weight(self.class_weight)

    def _check_reject(self, classes):
        if self.on_silence == "reject" and (
            classes.dtype.kind not in "iuf"
            or REJECTED in classes.tolist()
            or (classes.dtype.kind == "u" and classes.max() > np.iinfo(np.int64).max)
        ):
            raise ValueError(
                "on_silence='reject' marks rejected presentations by the label -1, so class labels "
                f"must be numbers other than -1 and below 2**63, got {classes.tolist()}"
            )

    def _make_basis(self):
        if self.basis is not None:
            return self.basis
        if self.window is None:
            window = max(int(self.n_basis), int(self.n_steps))
            n_values = int(self.n_basis) * window
            check_size(n_values, "n_steps, n_basis: values of the basis", "set a window")
            return RaisedCosineBasis(self.n_basis, window)
        return RaisedCosineBasis(self.n_basis, self.window)

    def _check_inputs(self, X, is_first=False, learns=False):
        """Return `X` as `Inputs`, and the number of input neurons.

        The first `X` (`is_first`) fixes what later ones must be like; `learns` says whether
        a later one is for further training.
        """
        if issparse(X):
            raise TypeError("X must be a dense array, not a sparse one; use X.toarray()")
        array = plain_array(X, "X", error=ValueError)
        # Names of columns only: scikit-learn takes axis 1 of spike trains for the inputs.
        validate_data(self, X, reset=is_first, skip_check_array=True, ensure_2d=False)
        X, n_steps = array, int(self.n_steps)
        flat = ""
        if X.ndim > 2 and X.size:
            shape = (len(X), X.size // len(X))
            flat = f". If these are images, flatten them: X.reshape(len(X), -1), of the shape {shape}"
        if X.ndim not in (2, 3):
            reshaped = flat or ". Reshape your data; write X.reshape(1, -1) if it is one presentation"
            raise ValueError(
                f"X must have the shape (n, n_inputs), or (n, {n_steps}, n_inputs) for spike trains of "
                f"n_steps={n_steps} steps, got {X.shape}{reshaped}"
            )
        if 0 in X.shape:
            raise ValueError(
                f"X must hold at least one presentation and one input, got {X.shape[-1]} feature(s) "
                f"(shape={X.shape}) while a minimum of 1 is required."
            )
        if not is_first and X.shape[-1] != self.n_features_in_:
            if X.ndim == 2 and X.size == self.n_features_in_:
                flat = ". If this is one image, flatten it: X.reshape(1, -1)"
            raise ValueError(
                f"X has {X.shape[-1]} inputs, but {self.n_features_in_} were used in training: "
                f"X has {X.shape[-1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input{flat}"
            )
        if X.dtype.kind == "c":
            raise ValueError(f"X must hold real numbers. Complex data not supported, got {X.dtype}")
        if X.ndim == 3:
            X = self._check_trains(X, flat)
        elif self.scale_inputs:
            X = finite_array(X, "X")
        if is_first:
            self.scaler_ = None
            if self.scale_inputs and X.ndim == 2:
                self.scaler_ = MinMaxScaler(clip=True).fit(X)
        if X.ndim == 2:
            X = check_intensities(self._scaled(X), "X", ", or use scale_inputs=True")
        self._compare_range(InputRange.of(X), is_first, learns)
        if X.ndim == 3:
            return Inputs("trains", X), X.shape[-1]
        if is_first and X.dtype == np.uint8:
            warn_of_small_integers(X, "X", SMALL_INTEGERS, ", or use scale_inputs=True")
        return Inputs.of_intensities(X), X.shape[1]

    def _check_trains(self, X, flat):
        n_steps = int(self.n_steps)
        if X.shape[1] != n_steps:
            raise ValueError(
                f"X must have the shape (n, {n_steps}, n_inputs) for spike trains of n_steps={n_steps} "
                f"steps, got {X.shape}{flat}"
            )
        try:
            trains = binary_array(X, "X")
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}, if it is spike trains (n, n_steps, n_inputs){flat}") from None
        known = self.inputs_seen_
        if _SMALLEST_IMAGE <= n_steps == X.shape[2] and (known is None or known.kind != "trains"):
            warn(
                f"X of the shape {X.shape} is taken for spike trains (n, n_steps, n_inputs) of {n_steps} "
                f"steps{flat}"
            )
        return trains

    def _compare_range(self, seen, is_first, learns):
        """Warn about inputs on another scale than in training, and record those of training."""
        known = self.inputs_seen_
        if not is_first and known is not None:
            known.warn_of_another_scale(seen)
            seen = known.joined(seen)
        if is_first or learns:
            self.inputs_seen_ = seen

    def _scaled(self, X):
        if (self.scaler_ is not None) != self.scale_inputs:
            raise ValueError(
                f"scale_inputs must be as in training, got {self.scale_inputs}: the range of each "
                "input is seen in training"
            )
        if self.scaler_ is None:
            return X
        warn_of_clipping(self.scaler_, X)
        return self.scaler_.transform(X)

    def _network(self, n_inputs, n_classes, basis, n_replicas=1):
        n_weights = n_inputs * n_classes * basis.n_basis
        check_size(n_weights, "X, y, n_basis: weights", "take fewer inputs, classes or functions")
        n_potentials = int(self.n_steps) * n_classes
        check_size(n_potentials, "n_steps, y: potentials of a presentation", "take fewer steps")
        return Network(
            n_inputs=n_inputs,
            n_classes=n_classes,
            n_steps=int(self.n_steps),
            basis=basis,
            feedback_basis=basis if self.objective.learns_feedback else None,
            activation=get_activation(self.activation),
            objective=self.objective,
            n_replicas=n_replicas,
            gpu=self.gpu,
        )

    def _start(self, network):
        if self.start_state is not None:
            self._keys[2] = derive_keys(self.start_state, _START)[0]
        random = np.random.default_rng(self._keys[2])
        scale, n_outputs = float(self.weight_scale), network.n_classes
        n_feedback = network.feedback_basis.n_basis if network.feedback_basis else 0
        weights = random.uniform(-scale, scale, (network.n_inputs, n_outputs, network.basis.n_basis))
        feedback = random.uniform(-scale, scale, (n_outputs, n_feedback))
        if self.bias_init == "uniform":
            bias = random.uniform(-1.0, 1.0, n_outputs)
        else:
            bias = np.full(n_outputs, float(self.bias_init))
        return Parameters(weights, feedback, bias)

    def _set_learned(self, parameters, network, classes, n_presentations=0):
        # Decisions were those of other parameters.
        vars(self).pop("decisions_", None)
        self.weights_ = parameters.weights
        self.bias_ = parameters.bias
        self.feedback_ = parameters.feedback
        if network.feedback_basis is None:
            self.feedback_ = np.zeros((network.n_classes, network.basis.n_basis))
        self.basis_ = network.basis
        self.classes_ = classes
        self.n_features_in_ = network.n_inputs
        self.n_presentations_ = n_presentations

    # ------------------------------------------------------------------ deciding

    def predict(self, X, first_presentation=0):
        """Return the class decided for each presentation.

        The random numbers of a presentation, for its input spikes and its outputs, depend on
        its number, which is its place in `X`.  If each call has only one presentation, each
        is number 0, so that all get the same random numbers and the decisions are far from
        independent: number them with `first_presentation`.

        Parameters
        ----------
        X : array_like
            As for `fit`.
        first_presentation : int
            The number of the first presentation.  ``predict(X[k:], k)`` is
            ``predict(X)[k:]``.

        Returns
        -------
        ndarray, shape (n,)
            With ``on_silence="reject"`` the label -1 marks no decision.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before training.
        TypeError, ValueError
            If a parameter or `X` is not valid, or the number of inputs not that of training.
        RuntimeError
            If there is no C++ compiler, or compiling or running fails.

        Examples
        --------
        >>> import numpy as np, glmbrian as glm
        >>> from brian2 import prefs
        >>> prefs.codegen.target = "numpy"
        >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 10, 6, axis=1)
        >>> y = ["left", "right"] * 10
        >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=3, learning_rate=0.1,
        ...                                device="runtime", random_state=1)
        >>> classifier.fit(X, y).predict(X[:4]).tolist()
        ['left', 'right', 'left', 'right']
        """
        outcome, _ = self._test(*self._checked_test(X), first_presentation)
        return self._decide(outcome, first_presentation)

    def score(self, X, y, sample_weight=None, first_presentation=0):
        """Return the fraction of presentations decided as in `y`.

        Parameters
        ----------
        X, y
            As for `evaluate`.
        sample_weight : array_like of float, shape (n,), optional
            How much each presentation counts.
        first_presentation : int
            As for `predict`.

        Returns
        -------
        float

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before training.
        TypeError, ValueError
            If a parameter or an array is not valid, or the number of inputs not that of training.
        RuntimeError
            If there is no C++ compiler, or compiling or running fails.

        Examples
        --------
        >>> import numpy as np, glmbrian as glm
        >>> from brian2 import prefs
        >>> prefs.codegen.target = "numpy"
        >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 10, 6, axis=1)
        >>> y = ["left", "right"] * 10
        >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=3, learning_rate=0.1,
        ...                                device="runtime", random_state=1)
        >>> classifier.fit(X, y).score(X, y)
        1.0

        The last of four labels is wrong, and counts for little:

        >>> classifier.score(X[:4], ["left", "right", "left", "left"], sample_weight=[3, 3, 3, 1])
        0.9
        """
        return self._judge(X, y, first_presentation, sample_weight)[0]

    def evaluate(self, X, y, first_presentation=0):
        """Test on presentations `X` of the classes `y`, and count what it took.

        What was decided for each presentation, and when, stays in `decisions_`.

        Parameters
        ----------
        X : array_like
            As for `fit`.
        y : array_like, shape (n,)
            Class labels, all of them known from training.
        first_presentation : int
            As for `predict`.

        Returns
        -------
        dict
            ``accuracy``, ``mean_decision_step`` (from 1; steps simulated a
            presentation), ``silent_fraction`` (without any output spike) and
            ``operations_per_class`` (input spikes integrated up to the decision
            plus the neuron's own).

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before training.
        TypeError, ValueError
            If a parameter or an array is not valid, or the number of inputs not that of training.
        RuntimeError
            If there is no C++ compiler, or compiling or running fails.

        Examples
        --------
        >>> import glmbrian as glm
        >>> digits = glm.datasets.load_mnist((5, 7), n_train=20, n_test=20)
        >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=4, n_epochs=3,
        ...                                device="runtime", random_state=0)
        >>> measured = classifier.fit(digits.X_train, digits.y_train).evaluate(
        ...     digits.X_test, digits.y_test)
        >>> seen = classifier.decisions_
        >>> right = seen.decided == seen.label
        >>> by_deadline = [(right & (seen.step <= deadline)).mean() for deadline in range(1, 5)]
        >>> bool(by_deadline[-1] == measured["accuracy"])
        True
        """
        accuracy, outcome = self._judge(X, y, first_presentation)
        return {"accuracy": accuracy, **measures(outcome)}

    def _judge(self, X, y, first_presentation, sample_weight=None):
        """Test on `X`; return the accuracy and the outcome."""
        network, inputs = self._checked_test(X)
        rejected = [REJECTED] if self.on_silence == "reject" else []
        y = check_known(y, len(inputs), self.classes_, "classes_", rejected)
        weights = check_weights(sample_weight, (len(inputs),))
        outcome, timing = self._test(network, inputs, first_presentation)
        decided = self._decide(outcome, first_presentation)
        self.timing_ = asdict(timing)
        self.decisions_ = Decisions(y, decided, outcome.steps, is_silent(outcome))
        return float(np.average(decided == y, weights=weights)), outcome

    def record(self, X, first_presentation=0):
        """Simulate a few presentations on the runtime device, recording all.

        The spikes are those that `predict` sees for the same arguments.

        Parameters
        ----------
        X : array_like
            As for `fit`.
        first_presentation : int
            As for `predict`.

        Returns
        -------
        list of glmbrian.devices.problem.Trace
            Of each presentation the input spikes, output spikes and membrane
            potentials, up to the decision, and the class decided.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before training.
        TypeError, ValueError
            If a parameter or `X` is not valid, or the number of inputs not that of training.

        Examples
        --------
        Input spikes of each step, and the output spike that decides:

        >>> import numpy as np, glmbrian as glm
        >>> from brian2 import prefs
        >>> prefs.codegen.target = "numpy"
        >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 10, 6, axis=1)
        >>> y = ["left", "right"] * 10
        >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=3, learning_rate=0.1,
        ...                                device="runtime", random_state=1)
        >>> (trace,) = classifier.fit(X, y).record(X[:1])
        >>> trace.inputs.sum(axis=1).tolist()
        [3, 4, 2]
        >>> trace.outputs.tolist()
        [[0, 0], [0, 0], [1, 0]]
        >>> str(trace.decided)
        'left'
        """
        network, inputs = self._checked_test(X)
        testing = self._testing(inputs, first_presentation)
        traces = recording_device().record(network, self._parameters(), inputs, testing)
        outcome = Outcome.from_rows([trace.row() for trace in traces], network.n_classes)
        for trace, decided in zip(traces, self._decide(outcome, first_presentation)):
            trace.decided = decided
        return traces

    def _test(self, network, inputs, first_presentation=0):
        testing = self._testing(inputs, first_presentation)
        with self._progress("testing", len(inputs)) as progress:
            return get_device(self.device).test(
                network, self._parameters(), inputs, testing, progress
            )

    def _checked_test(self, X, learns=False):
        self._check_fitted()
        self._check_parameters()
        self._check_reject(self.classes_)
        inputs, n_inputs = self._check_inputs(X, learns=learns)
        return self._network(n_inputs, len(self.classes_), self.basis_), inputs

    def _testing(self, inputs, first_presentation=0):
        most = 2**63 - 1 - len(inputs)
        return Testing(
            input_key=self._keys[3],
            output_key=self._keys[4],
            first_presentation=integer(first_presentation, "first_presentation", 0, most),
        )

    def _parameters(self):
        feedback = self.feedback_ if self.objective.learns_feedback else self.feedback_[:, :0]
        return Parameters(self.weights_, feedback, self.bias_)

    def _decide(self, outcome, first_presentation=0):
        decision = decide(
            outcome, self.objective, self.on_tie, self.on_silence, self._keys[5], first_presentation
        )
        labels = self.classes_[decision]
        if self.on_silence == "reject":
            rejected = decision == REJECTED
            if rejected.any() and labels.dtype.kind == "u":
                labels = labels.astype(np.int64)
            labels[rejected] = REJECTED
        return labels

    def _is_fitted(self):
        return hasattr(self, "weights_")

    def _check_fitted(self):
        if not self._is_fitted():
            raise NotFittedError(
                "this GLMClassifier is not fitted yet; call fit, or GLMClassifier.load"
            )

    def _progress(self, task, total):
        return Progress(task, total, self.verbose)

    # ------------------------------------------------------------------ files

    def save(self, path):
        """Write what was learned to a ``.npz`` file.

        The file holds ``weights``, ``feedback``, ``bias``, ``basis``,
        ``feedback_basis``, ``classes``, ``history`` and ``config`` (JSON), and can be read
        with ``numpy.load(path, allow_pickle=False)``.  ``input_range`` (the lowest and the
        highest value of each input in training) and ``feature_names`` are there if
        the classifier has them.  ``format`` is the version of this format, and ``checksum``
        shows whether any part was changed.

        Parameters
        ----------
        path : str or Path
            A new file, or a plain one, which is replaced once the new one is complete.  Links
            are followed.

        Raises
        ------
        OSError
            If `path` cannot be written, or is a device or read-only.
        TypeError
            If `path` is not a path.
        sklearn.exceptions.NotFittedError
            Before training.
        ValueError
            If the activation or the objective is not one of those that come with the package.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np, glmbrian as glm
        >>> from brian2 import prefs
        >>> prefs.codegen.target = "numpy"
        >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 10, 6, axis=1)
        >>> y = ["left", "right"] * 10
        >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=3, learning_rate=0.1,
        ...                                device="runtime", random_state=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "classifier.npz")
        ...     classifier.fit(X, y).save(path)
        ...     with np.load(path, allow_pickle=False) as file:
        ...         file["classes"].tolist(), file["weights"].shape
        (['left', 'right'], (12, 2, 2))
        """
        self._check_fitted()
        content = {
            "weights": self.weights_,
            "feedback": self.feedback_,
            "bias": self.bias_,
            "basis": self.basis_.matrix,
            "feedback_basis": self.basis_.matrix,
            "classes": as_labels(self.classes_, name="classes_")[0],
            "history": self.history_,
            "config": np.array(json.dumps(self._config())),
        }
        if self.scaler_ is not None:
            content["input_range"] = np.array([self.scaler_.data_min_, self.scaler_.data_max_])
        if hasattr(self, "feature_names_in_"):
            content["feature_names"] = self.feature_names_in_.astype(str)
        save_npz(path, content)

    def _config(self):
        parameters = self.get_params()
        parameters["activation"] = name_to_save(self.activation)
        parameters["decoding"] = objective_to_save(self.objective)
        # JSON keeps every bit of a float.
        if self.basis is not None:
            parameters["basis"] = self.basis.matrix.tolist()
        parameters["class_weight"] = class_weight_to_save(self.class_weight, self.classes_)
        # The resolved keys are saved in place of a generator.
        for name in ("random_state", "start_state"):
            if not isinstance(parameters[name], (numbers.Integral, type(None))):
                parameters[name] = None
        plain = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in parameters.items()
        }
        config = {
            "parameters": plain,
            "keys": self._keys,
            "n_presentations": self.n_presentations_,
            "version": __version__,
            "format": FORMAT,
        }
        if self.inputs_seen_ is not None:
            config["inputs"] = self.inputs_seen_._asdict()
        return config

    @classmethod
    def load(cls, path):
        """Read a classifier from a file that `save` has written.

        Parameters
        ----------
        path : str or Path
            The file, or a folder that `export` has written and whose program has
            run.

        Returns
        -------
        GLMClassifier

        Raises
        ------
        OSError
            If the file cannot be read, or the program in a folder has not run.
        ValueError
            If it is not such a file, or was changed after it was written.

        Examples
        --------
        What is loaded decides as before:

        >>> import os, tempfile
        >>> import numpy as np, glmbrian as glm
        >>> from brian2 import prefs
        >>> prefs.codegen.target = "numpy"
        >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 10, 6, axis=1)
        >>> y = ["left", "right"] * 10
        >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=3, learning_rate=0.1,
        ...                                device="runtime", random_state=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "classifier.npz")
        ...     classifier.fit(X, y).save(path)
        ...     loaded = glm.GLMClassifier.load(path)
        >>> loaded.predict(X[:4]).tolist()
        ['left', 'right', 'left', 'right']
        """
        path = as_path(path)
        if path.is_dir():
            return cls._load_exported(path)
        with reading(path, "GLMClassifier.save"):
            return cls._from_saved(SavedModel.read(path, cls._get_param_names(), len(_PURPOSES)))

    @classmethod
    def _from_saved(cls, saved):
        classifier = cls(**saved.parameters)
        if classifier.basis is not None:
            classifier.basis = CustomBasis(classifier.basis)
        classifier.class_weight = class_weight_from_file(classifier.class_weight, saved.classes)
        classifier._check_parameters()
        classifier._check_reject(saved.classes)
        classifier._keys = saved.keys
        network = classifier._network(len(saved.learned.weights), len(saved.classes), saved.basis)
        classifier._set_learned(saved.learned, network, saved.classes, saved.n_presentations)
        classifier.history_ = saved.history
        if saved.input_range is not None:
            classifier.scaler_ = MinMaxScaler(clip=True).fit(saved.input_range)
            classifier._scaled(saved.input_range)  # an error unless it scales
        elif classifier.scale_inputs and saved.inputs_seen and saved.inputs_seen.kind != "trains":
            raise ValueError("it lacks 'input_range'")
        if saved.feature_names is not None:
            classifier.feature_names_in_ = saved.feature_names.astype(object)
        classifier.inputs_seen_ = saved.inputs_seen
        return classifier

    @classmethod
    def _load_exported(cls, folder):
        if not (folder / _EXPORTED).is_file():
            raise ValueError(f"path: the folder {folder} is none that GLMClassifier.export has written")
        with reading(folder, "GLMClassifier.export"):
            saved = SavedModel.read(folder / _EXPORTED, cls._get_param_names(), len(_PURPOSES))
            classifier = cls._from_saved(saved)
            classes, n_inputs = classifier.classes_, classifier.n_features_in_
            network = classifier._network(n_inputs, len(classes), classifier.basis_)
            parameters, history, run = get_device(classifier.device).read_exported(
                network, folder, saved.has_checksum
            )
            n_presentations = classifier._take_settings(run, len(history))
            classifier._set_learned(parameters, network, classes, n_presentations)
            classifier.history_ = history[:, 0]
        return classifier

    def _take_settings(self, run, n_epochs):
        """Adopt the settings that a user may have changed in an exported project.

        Returns the number of presentations.
        """
        if not run:  # programs of version 0.1 do not report their settings
            n_items = self.n_presentations_ // self.n_epochs
            self.n_epochs = n_epochs
            return n_epochs * n_items
        for name in ("n_epochs", "batch_size"):
            setattr(self, name, int(run[name]))
        if int(run["target_period"]) != self.objective.period:
            self.target_period = int(run["target_period"])
        self.learning_rate = float(run["learning_rate"])
        self._keys[:2] = int(run["input_key"]), int(run["order_key"])
        if self.n_epochs != n_epochs:
            raise ValueError(f"job/history.bin must hold {self.n_epochs} epochs, got {n_epochs}")
        return int(run["first_presentation"]) + n_epochs * int(run["n_items"])
