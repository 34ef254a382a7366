"""The classifier: a network of GLM neurons with scikit-learn's interface."""

import html
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import MinMaxScaler

from ..core.activations import Activation
from ..core.bases import Basis
from ..core.credit import Credit
from ..core.decisions import REJECTED, Decisions, is_silent, measures
from ..core.objectives import Objective
from ..core.optimisers import Optimizer
from ..core.schedules import Schedule
from ..core.updates import OptimizerState
from ..devices import exporting_devices, get_device, recording_device
from ..devices.problem import Outcome, Parameters, Trace
from ..support.floating_point import underflow_is_zero
from ..support.progress import Progress
from ..support.storage import new_folder
from ..support.validation import choice, flag, warn
from .divergence import warn_of_divergence
from .early_stopping import fit_with_early_stopping
from .files import EXPORTED, as_saved, load_model, save_model
from .fitted_state import FittedState, HiddenLayer
from .input_range import InputRange
from .inputs import InputSpec
from .labels import check_known, check_weights
from .probabilities import calibration as measure_calibration
from .probabilities import class_probabilities, log_odds
from .settings import EARLIER_DEFAULTS, Settings
from .streams import Streams
from .testing import TestRun, prepare_test
from .training import prepare, prepare_more, train

#: The paper's choices, for ``GLMClassifier(**PAPER_SETTINGS)``.  From this start
#: and at this rate some seeds end in a bad optimum (see docs/design/choices.md).
PAPER_SETTINGS = {
    "learning_rate": 1e-3,
    "n_epochs": 200,
    "batch_size": 1,
    "weight_scale": 1.0,
    "bias_init": "uniform",
    "average": 0.0,
}


class GLMClassifier(ClassifierMixin, BaseEstimator):
    """Spiking classifier trained by maximum likelihood, with one output neuron per class.

    Inputs are rate encoded (see `RateEncoder`) for `n_steps` steps and drive
    `GLMNeurons`.  First-to-spike training maximises the probability that the
    right neuron spikes first (eq. first_spk_method_2); rate training maximises the
    probability of a desired train: one spike every `target_period` steps at the right
    neuron and none elsewhere (eq. LL_conv).

    Parameters
    ----------
    decoding : {"first-to-spike", "rate"} or Objective
        What training maximises, and how a test decides; see `Objective` to define your own.
    n_steps : int
        Steps per presentation (the paper's T).
    n_basis : int
        Number of functions in the raised-cosine basis (K).  They are one lag apart in windows of up
        to 32 lags; in longer ones they span the window, with ``normalise="energy"`` (see
        `RaisedCosineBasis`).
    window : int, optional
        Lags of the kernels; by default the larger of `n_steps` and `n_basis`.
    learning_rate : float
    n_epochs : int
    batch_size : int
        An update follows the mean gradient of a batch of so many presentations.
    weight_scale : float
        Weights start uniform between plus and minus this.
    bias_init : float, "auto" or "uniform"
        All biases start at this value, or uniform between -1 and 1.  "auto" is -5 for up to 32 steps,
        and ``-5 - log(n_steps / 8)`` for more, so that long presentations also begin with silence.
    activation : {"sigmoid", "probit", "cloglog"} or Activation
    target_period : int
        Period of the desired train in rate training.
    target_start : int, optional
        Step of the first desired spike in rate training, from 1 to `n_steps`; by default `target_period`.  In long
        presentations, take the step from which the inputs tell the classes apart.
    device : {"cpp_standalone", "runtime", "genn"}
        Compile training and testing to C++ programs; or let Brian simulate in
        Python, on the target that ``brian2.prefs.codegen.target`` names (if it is
        "auto", on NumPy if that finishes before Cython code would be compiled); or
        compile them with GeNN (see `gpu`).
    on_silence : {"potential", "random", "reject"}
        If no output neuron spikes: decide for the one with the highest membrane
        potential, for a random one, or for none (label -1).
    on_tie : {"potential", "random"}
        How to decide between neurons that spike first in the same step, or equally often.
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
        Accept features of any range, and scale each from its range in training to
        intensities from 0 to 1; values beyond that range are clipped.  By default
        `X` must already hold intensities.  Spike trains are never scaled.
    class_weight : None, "balanced" or dict, optional
        Weights of classes in training, which multiply those of presentations: a mapping of
        labels to weights (classes that it leaves out have the weight 1), or "balanced" for
        ``n / (n_classes * n_of_the_class)``, which counts presentations by their `sample_weight`.
    hidden : tuple of int
        Sizes of hidden layers of GLM neurons, from the input on; by default there are none.
        Their biases start at -1, and their weights normal with a standard deviation of
        ``1.4 / sqrt(n)`` for n neurons in the layer below.  The GeNN device can test
        networks with hidden layers, but not train them.
    hidden_basis : Basis, optional
        Basis of the kernels into hidden neurons, of at most `n_steps` lags; by default that of
        the outputs.
    hidden_feedback : Basis, optional
        Basis of the hidden neurons' own feedback kernels, of at most `n_steps` lags; without it
        they have none.
    credit : {"straight-through", "flip", "three-factor"} or Credit
        How hidden neurons learn; see `glmbrian.learning.layered_gradient`.  With "three-factor"
        the baseline is a running mean, which starts again in each call of `partial_fit`.
    learning_rate_schedule : {"constant", "linear"} or callable
        "linear" lowers the rate to 0 over the ``n_epochs * n`` presentations of training.  A
        function takes the fraction of training that is done, from 0 to 1, and returns what
        `learning_rate` is multiplied by.
    average : "auto" or float
        The fraction of the epochs, the last ones, over which parameters are averaged, rounded up to
        whole epochs: `fit` keeps the mean of the parameters after each of them.  "auto" is 0.3, or 0
        with `early_stopping`.  `partial_fit` does not average.
    weight_decay : float
        How fast synaptic and feedback weights, but not biases, decay to 0: after each epoch they
        are multiplied by ``exp(-weight_decay * total)``, where `total` is the sum of the learning
        rates of all updates in the epoch.  This approximates a penalty of ``weight_decay / 2``
        times the sum of their squares on the log-likelihood of each update.
    early_stopping : bool
        Hold out a part of the data in `fit`, test on it after each epoch, stop when its accuracy
        no longer improves, and keep the parameters of the best epoch; as in scikit-learn's
        ``MLPClassifier``.
    validation_fraction : float
        The fraction of the presentations of each class to hold out.
    n_iter_no_change : int
        Training stops after more than this many epochs in a row without an improvement.
    tol : float
        The accuracy improves if it exceeds the best so far by this.
    adversarial : None or mapping, optional
        ``{"budget": 5, "kind": "flip", "fraction": 1.0}`` trains against attacks on the input
        spikes.  With probability `fraction`, a presentation is attacked before it is learned: at
        most `budget` spikes are changed ("add", "remove" or "flip"), those that lower the
        log-likelihood most, to first order, at the current parameters.  Only `budget` is required.
        Needs an objective that clamps the outputs, and a `credit` with a gradient in the spikes;
        not available on GeNN.
    optimizer : {"sgd", "momentum", "adam"} or Optimizer
        How the gradient of a batch changes the parameters: `SGD()`, ``SGD(momentum=0.9)``, `Adam()`, or
        your own (see `Optimizer`).  `learning_rate` is the step size of all.  GeNN trains with "sgd" only.
    clip_norm : float, optional
        The largest norm of the mean gradient of a batch, over all parameters; longer ones are shortened to it.
        Not available on GeNN.

    Attributes
    ----------
    weights_ : ndarray of float, shape (n_inputs, n_classes, n_basis)
        With hidden layers, `n_inputs` is the size of the last one.
    hidden_layers_ : list of glmbrian.classifier.fitted_state.HiddenLayer
        From the input on; objects with ``weights`` (n_in, n, n_basis), ``bias`` (n,), ``feedback``
        (n, n_feedback), ``basis`` and ``feedback_basis``.
    feedback_ : ndarray of float, shape (n_classes, n_basis)
        Feedback weights; zeros with first-to-spike decoding, which does not use them.
    bias_ : ndarray of float, shape (n_classes,)
    classes_ : ndarray, shape (n_classes,)
    basis_ : Basis
    history_ : ndarray of float, shape (n_epochs,)
        Mean log-likelihood of the presentations of each epoch; with `adversarial`, after the
        changes of their spikes.
    validation_scores_ : ndarray of float, shape (n_epochs,)
        With `early_stopping`, the accuracy on the presentations held out, after each epoch, weighted
        by their `sample_weight`.
    n_presentations_ : int
        Presentations learned from so far; `partial_fit` continues the numbering from here.
    optimizer_state_ : glmbrian.core.updates.OptimizerState
        What the optimiser remembers, from which `partial_fit` continues.
    streams_ : glmbrian.classifier.streams.Streams
        Keys of the random numbers.
    scaler_ : sklearn.preprocessing.MinMaxScaler or None
        What `scale_inputs` scales with.
    inputs_seen_ : glmbrian.classifier.input_range.InputRange or None
        The kind of inputs in training and the largest intensity, used to notice later
        inputs on another scale; None for a model of version 0.1.
    timing_ : dict
        ``build_seconds``, ``run_seconds``, ``presentations`` and ``steps`` of the
        latest training or test run (`evaluate`, `score`), and for a compiled program
        ``peak_memory`` in bytes.
    decisions_ : glmbrian.core.decisions.Decisions
        What the latest `evaluate` or `score` observed for each presentation; not saved.
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

    weights_: NDArray[np.float64]
    hidden_layers_: list[HiddenLayer]
    feedback_: NDArray[np.float64]
    bias_: NDArray[np.float64]
    classes_: np.ndarray
    basis_: Basis
    history_: NDArray[np.float64]
    n_presentations_: int
    streams_: Streams
    validation_scores_: NDArray[np.float64]
    optimizer_state_: OptimizerState
    timing_: dict[str, Any]
    decisions_: Decisions
    n_features_in_: int
    feature_names_in_: np.ndarray
    # None until the first inputs are checked.
    scaler_: MinMaxScaler | None = None
    inputs_seen_: InputRange | None = None

    def __init__(
        self,
        decoding: str | Objective = "first-to-spike",
        n_steps: int = 8,
        n_basis: int = 8,
        window: int | None = None,
        learning_rate: float = 0.015,
        n_epochs: int = 20,
        batch_size: int = 1,
        weight_scale: float = 0.01,
        bias_init: float | str = "auto",
        activation: str | Activation = "sigmoid",
        target_period: int = 4,
        device: str = "cpp_standalone",
        on_silence: str = "potential",
        on_tie: str = "potential",
        gpu: bool | None = None,
        basis: Basis | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        start_state: int | np.random.RandomState | np.random.Generator | None = None,
        verbose: bool = True,
        scale_inputs: bool = False,
        class_weight: str | Mapping[Any, float] | None = None,
        hidden: tuple[int, ...] = (),
        hidden_basis: Basis | None = None,
        hidden_feedback: Basis | None = None,
        credit: str | Credit = "straight-through",
        learning_rate_schedule: str | Schedule = "constant",
        average: str | float = "auto",
        weight_decay: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        adversarial: Mapping[str, Any] | None = None,
        target_start: int | None = None,
        optimizer: str | Optimizer = "sgd",
        clip_norm: float | None = None,
    ) -> None:
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
        self.hidden = hidden
        self.hidden_basis = hidden_basis
        self.hidden_feedback = hidden_feedback
        self.credit = credit
        self.learning_rate_schedule = learning_rate_schedule
        self.average = average
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.adversarial = adversarial
        self.target_start = target_start
        self.optimizer = optimizer
        self.clip_norm = clip_norm

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = not self.scale_inputs
        # scikit-learn's checks expect an accuracy of 0.83 on data with two features, but two
        # inputs have too few spikes in a few steps to carry that much information.
        tags.classifier_tags.poor_score = True
        return tags

    def __repr__(self, N_CHAR_MAX=700):
        text = super().__repr__(N_CHAR_MAX)
        return f"{text} {self._fitted_to()}" if self._is_fitted else text

    # Notebooks show scikit-learn's picture, and a line about what was learned.

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
        state = self._fitted_to() if self._is_fitted else "not fitted"
        return f"<p>{html.escape(state)}</p>"

    def _fitted_to(self):
        labels = self.classes_.tolist()
        listed = ", ".join(map(repr, labels[:10])) + (", ..." if len(labels) > 10 else "")
        return f"fitted to {self.n_features_in_} inputs and {len(labels)} classes ({listed})"

    @property
    def objective(self) -> Objective:
        """The `Objective` that `decoding` stands for."""
        return self.settings.objective

    # ------------------------------------------------------- plain data, of which all else knows

    @property
    def settings(self) -> Settings:
        """The parameters as plain data.

        Raises
        ------
        TypeError, ValueError
            Unless all are valid.
        """
        return Settings.of(self.get_params(deep=False))

    @property
    def state(self) -> FittedState:
        """What was learned, as plain data.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before training.
        """
        if not self._is_fitted:
            raise NotFittedError(
                "this GLMClassifier is not fitted yet; call fit, or GLMClassifier.load"
            )
        layers = self.hidden_layers_
        return FittedState(
            Parameters(
                self.weights_, self.feedback_, self.bias_, tuple(layer.parameters for layer in layers)
            ),
            self.basis_,
            self.classes_,
            self.streams_,
            self.n_presentations_,
            self.history_,
            InputSpec(
                self.n_features_in_,
                self.scaler_,
                self.inputs_seen_,
                getattr(self, "feature_names_in_", None),
                type(self).__name__,
            ),
            layers[0].basis if layers else None,
            layers[0].feedback_basis if layers else None,
            validation_scores=getattr(self, "validation_scores_", None),
            optimizer_state=getattr(self, "optimizer_state_", None),
        )

    @property
    def _is_fitted(self):
        return hasattr(self, "weights_")

    def restore(self, state: FittedState) -> None:
        """Take over what was learned.  Training and `load` call this.

        Parameters
        ----------
        state : glmbrian.classifier.fitted_state.FittedState

        Examples
        --------
        Decide with weights twice as large:

        >>> from dataclasses import replace
        >>> import numpy as np, glmbrian as glm
        >>> settings = dict(n_steps=4, n_basis=2, n_epochs=1, device="runtime", random_state=1)
        >>> one = glm.GLMClassifier(**settings).fit([[1.0, 0.0], [0.0, 1.0]], ["left", "right"])
        >>> other = glm.GLMClassifier(**settings)
        >>> parameters = replace(one.state.parameters, weights=2 * one.weights_)
        >>> other.restore(replace(one.state, parameters=parameters))
        >>> bool(np.all(other.weights_ == 2 * one.weights_))
        True
        """
        parameters, spec = state.parameters, state.input_spec
        self.weights_ = parameters.weights
        self.bias_ = parameters.bias
        self.feedback_ = parameters.feedback
        if self.feedback_.size == 0:
            self.feedback_ = np.zeros((len(state.classes), state.basis.n_basis))
        self.hidden_layers_ = state.hidden_layers
        self.basis_ = state.basis
        self.classes_ = state.classes
        self.n_features_in_ = spec.n_inputs
        self.n_presentations_ = state.n_presentations
        self.streams_ = state.streams
        self.history_ = state.history
        self.scaler_ = spec.scaler
        self.inputs_seen_ = spec.seen
        optional = {
            "decisions_": None,  # earlier ones belong to other parameters
            "timing_": state.timing and asdict(state.timing),
            "optimizer_state_": state.optimizer_state,
            "validation_scores_": state.validation_scores,
            "feature_names_in_": spec.names,
        }
        for name, value in optional.items():
            self.__dict__.pop(name, None)
            if value is not None:
                setattr(self, name, value)

    def adopt(self, learned: FittedState) -> None:
        """Former name of `restore`.

        Parameters
        ----------
        learned : glmbrian.classifier.fitted_state.FittedState

        Examples
        --------
        >>> import warnings
        >>> import glmbrian as glm
        >>> settings = dict(n_steps=4, n_basis=2, n_epochs=1, device="runtime", random_state=1)
        >>> one = glm.GLMClassifier(**settings).fit([[1.0, 0.0], [0.0, 1.0]], ["left", "right"])
        >>> other = glm.GLMClassifier(**settings)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", DeprecationWarning)
        ...     other.adopt(one.state)
        >>> other.classes_.tolist()
        ['left', 'right']
        """
        warn("GLMClassifier.adopt is now GLMClassifier.restore", DeprecationWarning)
        self.restore(learned)

    def prepare_test(self, X: ArrayLike, first_presentation: int = 0) -> TestRun:
        """Check the arguments of `predict`, and return what is to be simulated.

        Parameters
        ----------
        X, first_presentation
            As for `predict`.

        Returns
        -------
        glmbrian.classifier.testing.TestRun

        Raises
        ------
        sklearn.exceptions.NotFittedError, TypeError, ValueError
            As for `predict`.

        Examples
        --------
        >>> import glmbrian as glm
        >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=1, device="runtime", random_state=1)
        >>> run = classifier.fit([[1.0, 0.0], [0.0, 1.0]], ["left", "right"]).prepare_test([[1.0, 0.5]])
        >>> run.network.n_steps, len(run.inputs)
        (4, 1)
        """
        state = self.state
        return prepare_test(self.settings, state, X, first_presentation)

    # ------------------------------------------------------------------ learning

    @underflow_is_zero
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "GLMClassifier":
        """Train on presentations `X` of the classes `y`.

        Parameters
        ----------
        X : array_like, shape (n, n_inputs) or (n, n_steps, n_inputs)
            Intensities, integers from 0 to 255 or real numbers from 0 to 1 (with
            `scale_inputs` any finite numbers); or ready-made spike trains of 0 and 1.
        y : array_like, shape (n,)
            Class labels.
        sample_weight : array_like of float, shape (n,), optional
            The gradient of each presentation is multiplied by its weight.  Presentations
            of weight 0 do not count in the mean of a batch.  With `early_stopping`, the accuracy on
            what is held out is weighted, too.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If a parameter or an array is not valid (before anything is compiled), or if
            training diverges.
        RuntimeError
            If there is no C++ compiler, or compiling or running fails.  Any error
            leaves the classifier unchanged.

        Warns
        -----
        RuntimeWarning
            If training seems to diverge: the log-likelihood is far below that of constant firing
            rates (`Objective.chance`) and of the parameters before training, or falls over the epochs.

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
        settings = self.settings
        prepared = self._prepared(settings, X, y, sample_weight)
        if settings.training.early_stopping:
            state, prepared = fit_with_early_stopping(settings, prepared, sample_weight)
        else:
            (state,) = train(prepared)
        warn_of_divergence([state], prepared)
        self.restore(state)
        return self

    def _prepared(self, settings, X, y, sample_weight=None, classes=None):
        """Return everything needed to train from the start."""
        owner = type(self).__name__
        return prepare([settings], X, y, sample_weight, classes, owner=owner, before=self.inputs_seen_)

    @underflow_is_zero
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "GLMClassifier":
        """Train for one more epoch, on the presentations `X` of the classes `y`.

        The first call starts as `fit` does.  Later calls, and calls after `fit` or
        `load`, continue from what has been learned.  They also continue the numbering of
        presentations, so each is encoded by new spikes.  Repeated calls on the same data
        learn what `fit` learns in that many epochs with ``average=0``.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.  `y` need not hold all classes.  With `scale_inputs` the first
            call sets the range of each feature.
        classes : array_like, optional
            All classes that will ever occur.  Required in the first call, optional later.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            As for `fit`; or if `classes` is missing in the first call or differs from
            earlier calls, or `y` holds other labels.
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
        settings, is_first = self.settings, not self._is_fitted
        settings.refuse_early_stopping("partial_fit")
        if is_first and classes is None:
            raise ValueError(
                "classes must be passed on the first call to partial_fit, with all that will ever occur"
            )
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all presentations, but partial_fit sees only some; "
                "use a mapping of labels to weights, such as those that "
                "sklearn.utils.class_weight.compute_class_weight computes"
            )
        if is_first:
            prepared, earlier = self._prepared(settings, X, y, sample_weight, classes), np.empty(0)
        else:
            prepared = prepare_more(settings, self.state, X, y, sample_weight, classes)
            earlier = self.history_
        one_epoch = prepared.training.epoch(0, len(prepared.inputs))
        (state,) = train(replace(prepared, training=one_epoch))
        warn_of_divergence([state], prepared)
        self.restore(replace(state, history=np.concatenate([earlier, state.history])))
        return self

    def __setstate__(self, state):
        state = dict(state)
        if "_keys" in state:  # pickled by version 0.1
            state["streams_"] = Streams.from_file(state.pop("_keys"))
        # Pickled before there were hidden layers
        state = {**type(self)().get_params(), **EARLIER_DEFAULTS, **state}
        if "weights_" in state:
            state.setdefault("hidden_layers_", [])
        super().__setstate__(state)

    def export(self, X: ArrayLike, y: ArrayLike, directory: str | Path) -> None:
        """Write a self-contained project that trains as `fit` would.

        ``make run`` in the folder compiles and trains; `load` and ``glmbrian
        evaluate`` then read the folder.

        Parameters
        ----------
        X, y
            As for `fit`.
        directory : str or Path
            A new or empty folder, or one left unfinished by an interrupted export.

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
        settings, parameters = self.settings, self.get_params(deep=False)
        settings.refuse_early_stopping("export")
        as_saved(parameters, settings)  # raises if a file cannot hold it
        prepared = prepare([settings], X, y, owner=type(self).__name__)
        with new_folder(directory, "directory") as folder:
            get_device(self.device).export(
                prepared.network,
                prepared.starts[0],
                prepared.inputs,
                prepared.labels,
                prepared.training,
                folder,
            )
            save_model(parameters, prepared.state(), folder / EXPORTED)

    # ------------------------------------------------------------------ deciding

    @underflow_is_zero
    def predict(self, X: ArrayLike, first_presentation: int = 0) -> np.ndarray:
        """Return the class decided for each presentation.

        The random numbers for a presentation's input spikes and outputs depend on its
        number, which is its position in `X`.  If each call has only one presentation, each
        is number 0: all get the same random numbers, and the decisions are far from
        independent.  Number them with `first_presentation`.

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
            If a parameter or `X` is not valid, or the number of inputs differs from training.
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
        run = self.prepare_test(X, first_presentation)
        outcome, _ = self._test(run)
        return run.decided_labels(outcome)

    @underflow_is_zero
    def predict_proba(
        self,
        X: ArrayLike,
        *,
        deadline: int | None = None,
        n_encodings: int = 1,
        n_hidden: int = 10,
        n_simulated: int = 256,
        first_presentation: int = 0,
    ) -> NDArray[np.float64]:
        """Return the probability that `predict` decides for each class, given the input spikes.

        The input spikes are those that `predict` sees.  What remains random are the spikes of the
        outputs, so `predict` need not choose the most probable class.

        With first-to-spike decoding the probabilities are in closed form: output i spikes first
        in step t with the probability that none spiked before, times g(u_i,t), times the
        probability that i wins against others that spike in the same step.  With rate decoding
        they are exact for up to 10 steps, from all spike trains of each output.  For more steps,
        each output is simulated `n_simulated` times, and all combinations of these simulations
        are compared.  Custom objectives define `Objective.probabilities`.

        Parameters
        ----------
        X : array_like
            As for `fit`.
        deadline : int, optional
            Decide after this step, as if presentations ended with it; by default `n_steps`.
        n_encodings : int
            Average over this many encodings of intensities.  The first one is that of `predict`.
        n_hidden : int
            Average over this many draws of the hidden spikes of each encoding.  The first one is
            that of `predict`.  Without hidden layers it has no effect.
        n_simulated : int
            How often to simulate the outputs, where that is necessary.
        first_presentation : int
            As for `predict`.

        Returns
        -------
        ndarray of float, shape (n, n_classes)
            Columns in the order of `classes_`.  Rows sum to 1.  With ``on_silence="reject"`` they
            sum to 1 minus the probability that no output spikes.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before training.
        TypeError, ValueError
            If a parameter or an argument is not valid, or a custom objective does not define
            `probabilities`.

        Examples
        --------
        >>> import numpy as np, glmbrian as glm
        >>> from brian2 import prefs
        >>> prefs.codegen.target = "numpy"
        >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 10, 6, axis=1)
        >>> y = ["left", "right"] * 10
        >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=3, learning_rate=0.1,
        ...                                device="runtime", random_state=1)
        >>> probabilities = classifier.fit(X, y).predict_proba(X[:2])
        >>> classifier.classes_[probabilities.argmax(axis=1)].tolist()
        ['left', 'right']
        >>> probabilities.sum(axis=1).round(12).tolist()
        [1.0, 1.0]
        """
        run = self.prepare_test(X, first_presentation)
        return class_probabilities(run, deadline, n_encodings, n_hidden, n_simulated)

    @underflow_is_zero
    def decision_function(
        self,
        X: ArrayLike,
        *,
        deadline: int | None = None,
        n_encodings: int = 1,
        n_hidden: int = 10,
        n_simulated: int = 256,
        first_presentation: int = 0,
    ) -> NDArray[np.float64]:
        """Return the log-odds of the second of two classes, or log-probabilities of more classes.

        scikit-learn's ``CalibratedClassifierCV`` uses it.

        Parameters
        ----------
        X, deadline, n_encodings, n_hidden, n_simulated, first_presentation
            As for `predict_proba`.

        Returns
        -------
        ndarray of float, shape (n,) or (n, n_classes)
            Probabilities below 2.2e-308 count as this.

        Raises
        ------
        sklearn.exceptions.NotFittedError, TypeError, ValueError
            As for `predict_proba`.

        Examples
        --------
        >>> import numpy as np, glmbrian as glm
        >>> from brian2 import prefs
        >>> prefs.codegen.target = "numpy"
        >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 10, 6, axis=1)
        >>> y = ["left", "right"] * 10
        >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=3, learning_rate=0.1,
        ...                                device="runtime", random_state=1)
        >>> (classifier.fit(X, y).decision_function(X[:2]) > 0).tolist()
        [False, True]
        """
        run = self.prepare_test(X, first_presentation)
        return log_odds(class_probabilities(run, deadline, n_encodings, n_hidden, n_simulated))

    @underflow_is_zero
    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        first_presentation: int = 0,
    ) -> float:
        """Return the fraction of presentations for which the decision matches `y`.

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
            If a parameter or an array is not valid, or the number of inputs differs from training.
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

    @underflow_is_zero
    def evaluate(
        self, X: ArrayLike, y: ArrayLike, first_presentation: int = 0, *, calibration: bool = False
    ) -> dict[str, Any]:
        """Test on presentations `X` of the classes `y`, and measure accuracy and cost.

        `decisions_` keeps what was decided for each presentation, and when.

        Parameters
        ----------
        X : array_like
            As for `fit`.
        y : array_like, shape (n,)
            Class labels, all known from training.
        first_presentation : int
            As for `predict`.
        calibration : bool
            Whether to compare `predict_proba` with the labels as well.

        Returns
        -------
        dict
            ``accuracy``, ``mean_decision_step`` (from 1; steps simulated per
            presentation), ``silent_fraction`` (without any output spike) and
            ``operations_per_class`` (spikes that an output integrates up to the decision
            plus its own).  With hidden layers also ``hidden_spikes`` (of all hidden neurons,
            up to the decision) and ``operations_per_layer`` (a list of the operations of all
            neurons of each layer, the outputs last).  With `calibration` also
            ``expected_calibration_error`` (the mean distance between the probability of the most
            probable class and the fraction of presentations that are of this class, in ten bins
            of equal width) and ``log_loss`` (the mean negative log-probability of the right class).

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before training.
        TypeError, ValueError
            If a parameter or an array is not valid, or the number of inputs differs from training.
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
        calibration = flag(calibration, "calibration")
        accuracy, outcome = self._judge(X, y, first_presentation)
        sizes = [len(layer.bias) for layer in self.hidden_layers_]
        measured = {"accuracy": accuracy, **measures(outcome, sizes)}
        if not calibration:
            return measured
        probabilities = self.predict_proba(X, first_presentation=first_presentation)
        return {**measured, **measure_calibration(self.classes_, self.decisions_.label, probabilities)}

    def _judge(self, X, y, first_presentation, sample_weight=None):
        """Test on `X`; return the accuracy and the outcome."""
        run = self.prepare_test(X, first_presentation)
        rejected = [REJECTED] if self.on_silence == "reject" else []
        y = check_known(y, len(run.inputs), self.classes_, "classes_", rejected)
        weights = check_weights(sample_weight, (len(run.inputs),))
        outcome, timing = self._test(run)
        decided = run.decided_labels(outcome)
        self.timing_ = asdict(timing)
        self.decisions_ = Decisions(y, decided, outcome.steps, is_silent(outcome))
        return float(np.average(decided == y, weights=weights)), outcome

    def _test(self, run):
        with Progress("testing", len(run.inputs), self.verbose) as progress:
            return get_device(self.device).test(
                run.network, run.parameters, run.inputs, run.testing, progress
            )

    @underflow_is_zero
    def record(self, X: ArrayLike, first_presentation: int = 0) -> list[Trace]:
        """Simulate a few presentations on the runtime device, recording everything.

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
            For each presentation, the input spikes, hidden spikes, output spikes and membrane
            potentials, up to the decision, and the class decided.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before training.
        TypeError, ValueError
            If a parameter or `X` is not valid, or the number of inputs differs from training.

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
        run = self.prepare_test(X, first_presentation)
        traces = recording_device().record(run.network, run.parameters, run.inputs, run.testing)
        outcome = Outcome.from_rows(
            [trace.row() for trace in traces], run.network.n_classes, len(run.network.hidden.sizes)
        )
        for trace, decided in zip(traces, run.decided_labels(outcome)):
            trace.decided = decided
        return traces

    # ------------------------------------------------------------------ files

    def save(self, path: str | Path) -> None:
        """Write what was learned to a ``.npz`` file.

        The file holds ``weights``, ``feedback``, ``bias``, ``basis``,
        ``feedback_basis``, ``classes``, ``history`` and ``config`` (JSON), and can be read
        with ``numpy.load(path, allow_pickle=False)``.  For each hidden layer it holds
        ``hidden_0_weights``, ``hidden_0_feedback`` and ``hidden_0_bias``, and for all of them
        ``hidden_basis``, and ``hidden_feedback_basis`` if they have feedback kernels.
        ``input_range`` (the lowest and the highest value of each input in training),
        ``feature_names`` and ``validation_scores`` are included if the classifier has them.  ``format`` is the version of this format, and ``checksum``
        reveals whether any part was changed.

        Parameters
        ----------
        path : str or Path
            A new file, or an existing plain file, which is replaced once the new one is
            complete.  Links are followed.

        Raises
        ------
        OSError
            If `path` cannot be written, or is a device or read-only.
        TypeError
            If `path` is not a path.
        sklearn.exceptions.NotFittedError
            Before training.
        ValueError
            If the activation or the objective does not come with the package.

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
        state = self.state
        save_model(self.get_params(deep=False), state, path)

    @classmethod
    def load(cls, path: str | Path) -> "GLMClassifier":
        """Read a classifier from a file written by `save`.

        Parameters
        ----------
        path : str or Path
            The file, or a folder written by `export` whose program has run.

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
        A loaded classifier decides as before:

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
        parameters, state = load_model(path, cls().get_params(deep=False))
        loaded = cls(**parameters)
        loaded.restore(state)
        return loaded
