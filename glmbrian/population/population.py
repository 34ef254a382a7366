"""The parameters of a population of GLM neurons, independent of any simulation."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from brian2 import Quantity
from numpy.typing import ArrayLike, NDArray

from ..brian.neurons import GLMNeurons
from ..brian.synapses import GLMSynapses
from ..brian.time_steps import time_step
from ..classifier.classifier import GLMClassifier
from ..core.activations import Activation
from ..core.bases import Basis
from ..core.likelihoods import potential_of_inputs
from ..core.randomness import RandomState
from ..support.display import html_table
from ..support.renamed import renamed, warn_of_former_name
from ..support.validation import choice, finite_array
from ..timed.data import dense_series
from .connectivity import MEASURES, Connectivity, connectivity, likelihood_ratios, wald_statistics
from .files import load_population, save_population
from .networks import neurons_of, of_classifier, of_network, synapses_of
from .objective import bits_per_spike, log_likelihoods, membrane_potentials
from .observations import Bernoulli, Observations
from .parameters import STABILITY, PopulationParameters, checked_parameters, of_kernels
from .recorded import Epochs, RecordedData, read
from .rescaling import KSTest, ks_test, rescaled_times
from .series import require_steps
from .stabilising import stabilise
from .stability import Stability, checked_setting, stability
from .standard_errors import StandardErrors, fisher_standard_errors

#: What earlier versions wrote into pickled populations, and what `GLMPopulation.moved_by` says now.
_FORMER_REASONS = {
    "it was fitted with a penalty, which moves parameters": "a penalty",
    "it was fitted under the constraint of stability": STABILITY,
}


class GLMPopulation:
    """The parameters of GLM neurons: what is fitted, and then simulated.

    The membrane potential of neuron i in step t is that of `GLMNeurons`
    (eq. membrane_potential_GLM): the sum of its inputs weighted by the synaptic
    kernels alpha = A w, its own spikes weighted by the feedback kernel beta = B v, and the
    bias.  There may be several inputs, each with its own named kernel.  The population is
    an input to itself if one kernel, for example "coupling", gets its outputs:
    ``inputs={"stimulus": x, "coupling": outputs}``.

    Parameters
    ----------
    bias : array_like of float, shape (n,)
    kernels : Basis or dict of str to Basis
        Basis of the synaptic kernels, called ``"stimulus"``, or several by name; ``{}`` for
        neurons driven only by their bias and their own spikes.
    weights : array_like of float or dict of str to array_like
        Weights w of each kernel, shape (n_source, n, n_basis); an array if there
        is one kernel.
    feedback_basis : Basis, optional
        Basis of the feedback kernel.
    feedback_weights : array_like of float, shape (n, n_basis), optional
        Weights v of the feedback kernel.  Give both of the last two, or neither.
    activation : {"sigmoid", "probit", "cloglog"} or Activation
        The firing probability g(u).
    dt : Quantity of time, optional
        Duration of a step, such as ``1*ms``, at which the parameters were fitted.  Neurons
        of the population run only at this step.

    Attributes
    ----------
    n : int
        Number of neurons.
    dt : Quantity or None
        Duration of a step; None if it is unknown.  It can be set.
    bias, kernels, weights, feedback_basis, feedback_weights, activation
        As above; `kernels` and `weights` are dicts.
    fit_ : FitReport or None
        How the fit ended, if `fit_population` made the population; it is not saved.
    standard_errors_ : StandardErrors
        Of a fit without a penalty or `stable`, computed at first use.
    known_standard_errors : StandardErrors or None
        The standard errors once they have been computed, which plots then show.
    known_likelihood_ratios : dict of str to ndarray of float, shape (n_source, n)
        By kernel, the likelihood-ratio statistics of its pairs, once they have been computed.
    fitted_to : RecordedData or None
        The data of the fit, which must not change until the standard errors are computed.  Pickled
        copies do not have them.
    moved_by : str or None
        What keeps the parameters of a fit away from the maximum of the likelihood, such as "a penalty
        (ridge, strength 2)"; files keep it.  Then the population has no standard errors, and
        cannot be compared by its likelihood.
    observations : Observations
        What is recorded in each step: spikes with the probability `activation`, unless others were fitted.  Then
        the population has no `activation`, and cannot be simulated or saved.
    fitted_rates : ndarray of float, shape (n,), or None
        Of a fit, the rates in its data, in spikes per step, where neurons that never spiked count
        as having half a spike.  Files do not keep them.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type, or shapes do not match.

    See Also
    --------
    fit_population : fits a population to recorded spike trains.

    Examples
    --------
    Two neurons that see one input, which excites the first and inhibits the second:

    >>> import glmbrian as glm
    >>> population = glm.GLMPopulation(
    ...     [-1.0, 0.0], glm.IndicatorBasis(2), [[[2.0, 1.0], [-3.0, 0.0]]]
    ... )
    >>> population.membrane_potential([[1], [0], [0], [0]])
    array([[-1.,  0.],
           [ 1., -3.],
           [ 0.,  0.],
           [-1.,  0.]])
    """

    bias: NDArray[np.float64]
    kernels: dict[str, Basis]
    weights: dict[str, NDArray[np.float64]]
    feedback_basis: Basis | None
    feedback_weights: NDArray[np.float64] | None
    observations: Observations

    #: How the fit ended, a `FitReport`; None if the population was not fitted.
    fit_: Any = None

    # For populations pickled by earlier versions.
    _dt = None
    known_standard_errors: StandardErrors | None = None
    known_likelihood_ratios: Mapping[str, NDArray[np.float64]] = MappingProxyType({})
    fitted_to: RecordedData | None = None
    fitted_rates: NDArray[np.float64] | None = None
    moved_by: str | None = None

    @renamed(feedback="feedback_basis")
    def __init__(
        self,
        bias: ArrayLike,
        kernels: Basis | Mapping[str, Basis],
        weights: ArrayLike | Mapping[str, ArrayLike],
        feedback_basis: Basis | None = None,
        feedback_weights: ArrayLike | None = None,
        activation: str | Activation = "sigmoid",
        dt: Quantity | None = None,
    ) -> None:
        self._take(
            checked_parameters(bias, kernels, weights, feedback_basis, feedback_weights, activation, dt)
        )

    def _take(self, parameters):
        for each in fields(parameters):
            setattr(self, each.name, getattr(parameters, each.name))
        return self

    @property
    def parameters(self) -> PopulationParameters:
        """The parameters as plain data, which share memory with the population."""
        return PopulationParameters(
            **{each.name: getattr(self, each.name) for each in fields(PopulationParameters)}
        )

    @classmethod
    def from_parameters(cls, parameters: PopulationParameters) -> "GLMPopulation":
        """Return the population with copies of these parameters.

        Parameters
        ----------
        parameters : PopulationParameters

        Returns
        -------
        GLMPopulation

        Examples
        --------
        >>> import glmbrian as glm
        >>> population = glm.GLMPopulation.from_kernels([0.0], [[[1.0, 0.5]]])
        >>> glm.GLMPopulation.from_parameters(population.parameters).kernel()
        array([[[1. , 0.5]]])
        """
        return cls.__new__(cls)._take(parameters.copy())

    @classmethod
    def from_kernels(
        cls,
        bias: ArrayLike,
        kernels: ArrayLike | Mapping[str, ArrayLike],
        feedback: ArrayLike | None = None,
        activation: str | Activation = "sigmoid",
        dt: Quantity | None = None,
    ) -> "GLMPopulation":
        """Return the population with these kernels, each given by its values.

        Parameters
        ----------
        bias : array_like of float, shape (n,)
        kernels : array_like of float or dict of str to array_like
            Kernels of shape (n_source, n, window), called ``"stimulus"``, or several
            by name.  Entry ``l - 1`` is the effect of an input `l` steps later.
        feedback : array_like of float, shape (n, window), optional
            Feedback kernels.
        activation : str or Activation
        dt : Quantity of time, optional
            As for `GLMPopulation`.

        Returns
        -------
        GLMPopulation
            Its weights are the kernels; its bases are `IndicatorBasis`.

        Raises
        ------
        TypeError, ValueError
            As for `GLMPopulation`.

        Examples
        --------
        >>> import glmbrian as glm
        >>> glm.GLMPopulation.from_kernels([0.0], [[[1.0, 0.5, 0.2]]]).kernel("stimulus")
        array([[[1. , 0.5, 0.2]]])
        """
        return cls.from_parameters(of_kernels(bias, kernels, feedback, activation, dt))

    @classmethod
    def from_classifier(cls, classifier: GLMClassifier, dt: Quantity | None = None) -> "GLMPopulation":
        """Return the output neurons of a fitted classifier, for use in a network.

        Parameters
        ----------
        classifier : GLMClassifier
        dt : Quantity of time, optional
            Duration of a step in the network.  The steps of a classifier have no duration.

        Returns
        -------
        GLMPopulation
            One neuron per class, in the order of ``classifier.classes_``, with the kernel
            ``"stimulus"`` from the inputs.  With rate decoding there is also feedback.

        Raises
        ------
        TypeError
            If `classifier` is something else.
        ValueError
            If it has hidden layers.
        sklearn.exceptions.NotFittedError
            If it is not fitted.

        Examples
        --------
        >>> import numpy as np, glmbrian as glm
        >>> from brian2 import ms
        >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0]] * 5), [0, 1] * 5
        >>> classifier = glm.GLMClassifier(n_steps=4, n_epochs=1, device="runtime", verbose=False)
        >>> population = glm.GLMPopulation.from_classifier(classifier.fit(X, y), dt=1 * ms)
        >>> population.n, population.kernel("stimulus").shape
        (2, (2, 2, 8))
        """
        return cls.from_parameters(of_classifier(classifier, dt))

    @classmethod
    def from_network(
        cls, neurons: GLMNeurons, synapses: GLMSynapses | Sequence[GLMSynapses] = ()
    ) -> "GLMPopulation":
        """Read the parameters of neurons and synapses in a Brian network.

        Parameters
        ----------
        neurons : GLMNeurons
        synapses : GLMSynapses or list of GLMSynapses
            All synapses onto these neurons; none by default.  If several have the same
            kernel, its sources (and the columns of its input) are the sources of the
            first, then those of the next, in the order of this list.  Kernels without
            synapses are left out.

        Returns
        -------
        GLMPopulation
            Its `dt` is that of the neurons' clock.

        Raises
        ------
        TypeError
            If an argument has another type.
        ValueError
            If synapses go to other neurons or only to some of the neurons, or have a
            delay, which a population cannot represent.

        Examples
        --------
        >>> import glmbrian as glm
        >>> from brian2 import SpikeGeneratorGroup, ms, prefs
        >>> prefs.codegen.target = "numpy"
        >>> inputs = SpikeGeneratorGroup(1, [0], [0] * ms)
        >>> neurons = glm.GLMNeurons(2, glm.IndicatorBasis(2))
        >>> neurons.bias = [-1.0, 0.5]
        >>> synapses = glm.GLMSynapses(inputs, neurons)
        >>> synapses.w = [[[2.0, 1.0], [-3.0, 0.0]]]
        >>> population = glm.GLMPopulation.from_network(neurons, synapses)
        >>> population.bias
        array([-1. ,  0.5])
        >>> population.kernel("stimulus")
        array([[[ 2.,  1.],
                [-3.,  0.]]])
        """
        return cls.from_parameters(of_network(neurons, synapses))

    @property
    def dt(self) -> Quantity | None:
        """Duration of a step, a Quantity, or None if it is unknown."""
        return self._dt

    @dt.setter
    def dt(self, dt: Quantity | None) -> None:
        self._dt = time_step(dt)

    @property
    def activation(self) -> Activation:
        """The firing probability g(u); a ValueError is raised if other observations than spikes were fitted."""
        return self.parameters.activation

    @activation.setter
    def activation(self, activation: Activation) -> None:
        self.observations = Bernoulli(activation)

    @property
    def n(self) -> int:
        """Number of neurons."""
        return self.bias.size

    def kernel(self, name: str = "stimulus") -> NDArray[np.float64]:
        """Return the kernels alpha = A w with this name.

        Parameters
        ----------
        name : str

        Returns
        -------
        ndarray of float, shape (n_source, n, window)
            Entry ``l - 1`` is the effect of an input `l` steps later.

        Raises
        ------
        ValueError
            If there is no such kernel.

        Examples
        --------
        Two functions of three lags each, and the kernel that they form:

        >>> import glmbrian as glm
        >>> basis = glm.CustomBasis([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
        >>> population = glm.GLMPopulation([0.0], {"coupling": basis}, [[[2.0, -1.0]]])
        >>> population.kernel("coupling")
        array([[[ 2. ,  0.5, -1. ]]])
        """
        self._require_kernel(name, "name")
        return self.kernels[name].kernels(self.weights[name])

    @property
    def feedback(self) -> Basis | None:
        """The former name of `feedback_basis`."""
        warn_of_former_name("feedback", "feedback_basis")
        return self.feedback_basis

    def __setstate__(self, state):
        state = dict(state)
        if "feedback" in state:  # pickled under the former name
            state["feedback_basis"] = state.pop("feedback")
        former = state.pop("why_no_standard_errors", None)
        if former is not None:
            state.setdefault("moved_by", _FORMER_REASONS.get(former))
        if "activation" in state:
            state["observations"] = Bernoulli(state.pop("activation"))
        vars(self).update(state)

    def feedback_kernels(self) -> NDArray[np.float64]:
        """Return the feedback kernels beta = B v.

        Returns
        -------
        ndarray of float, shape (n, window)
            Entry ``l - 1`` is the effect of a neuron's own spike `l` steps later.

        Raises
        ------
        AttributeError
            If this population has no feedback kernel.

        Examples
        --------
        >>> import glmbrian as glm
        >>> population = glm.GLMPopulation(
        ...     [0.0], glm.IndicatorBasis(1), [[[1.0]]],
        ...     feedback_basis=glm.CustomBasis([[1.0], [0.5]]), feedback_weights=[[-4.0]]
        ... )
        >>> population.feedback_kernels()
        array([[-4., -2.]])
        """
        if self.feedback_basis is None:
            raise AttributeError(
                "this population has no feedback kernel: create it with "
                "GLMPopulation(..., feedback_basis=basis, feedback_weights=...)"
            )
        return self.feedback_basis.kernels(self.feedback_weights)  # type: ignore[arg-type]

    def membrane_potential(self, inputs: Any = None, outputs: Any = None) -> NDArray[np.float64]:
        """Return the membrane potentials that given trains cause.

        Eq. membrane_potential_GLM: step t sees the steps ``t - window`` to ``t - 1``.
        Everything before the first step is zero, and so is everything before a gap in the times.

        Parameters
        ----------
        inputs : array_like of float or dict of str to array_like
            The input of each kernel, shape (T, n_source): spikes, counts or any
            continuous stimulus.  Give an array if there is one kernel, and leave it out if
            there is none.  A `Recording` is binned in steps of `dt`.  A dict may have more inputs
            than there are kernels, so that nested models can be given the same data: each takes the
            inputs of its own kernels.  As for `fit_population`, data that know their times must have
            the same times.
        outputs : array_like of 0/1, shape (T, n), or Recording, optional
            Output trains; required if there is a feedback kernel, or no other kernel.

        Returns
        -------
        u : ndarray of float, shape (T, n)

        Raises
        ------
        ValueError, TypeError
            If inputs are missing, shapes do not match, values are not finite, or data
            have steps other than `dt`.

        Examples
        --------
        The input is seen for two steps, and the neuron's own spike for one:

        >>> import glmbrian as glm
        >>> population = glm.GLMPopulation.from_kernels(
        ...     [-1.0], [[[2.0, 1.0]]], feedback=[[-3.0]]
        ... )
        >>> population.membrane_potential([[1], [0], [0], [0]], outputs=[[0], [1], [0], [0]])
        array([[-1.],
               [ 1.],
               [-3.],
               [-1.]])
        """
        if outputs is None and self.feedback_basis is not None:
            raise ValueError("outputs are needed: these neurons have a feedback kernel")
        population = self.parameters
        return membrane_potentials(population, read([population], outputs, inputs, may_have_gaps=True))

    def firing_probability(self, inputs: Any = None, outputs: Any = None) -> NDArray[np.float64]:
        """Return the firing probabilities g(u) that given trains cause.

        Parameters
        ----------
        inputs, outputs
            As for `membrane_potential`.

        Returns
        -------
        ndarray of float, shape (T, n)

        Raises
        ------
        ValueError, TypeError
            As for `membrane_potential`.

        Examples
        --------
        >>> import glmbrian as glm
        >>> population = glm.GLMPopulation.from_kernels([0.0], [[[2.0, -1.0]]])
        >>> population.firing_probability([[1], [0], [0], [0]]).round(2)
        array([[0.5 ],
               [0.88],
               [0.27],
               [0.5 ]])
        """
        return self.parameters.activation.probability(self.membrane_potential(inputs, outputs))

    def log_likelihood(
        self, outputs: Any, inputs: Any = None, mask: ArrayLike | None = None, *, epochs: Epochs = None
    ) -> float:
        """Return the log-probability of output trains, given their own past and the inputs.

        Eq. LL_conv, in nats, summed over steps and neurons.  The outputs are fed back, and
        so is everything in `inputs`.

        Parameters
        ----------
        outputs : array_like of 0/1, shape (T, n), or Recording
            They may be a memory-mapped array, or a data set of h5py or zarr: as for
            `fit_population`, they are read in blocks of steps.
        inputs : array_like of float or dict of str to array_like
            As for `membrane_potential`, and read like `outputs`.
        mask : array_like of bool, shape (T,), optional
            The steps that count; all by default.  See `fit_population`.
        epochs : list of (start, stop), optional
            The parts of the recording that count, as for `fit_population`.  Kernels see nothing
            from before an epoch.

        Returns
        -------
        float

        Raises
        ------
        ValueError, TypeError
            As for `membrane_potential`, or if `mask` is not valid.

        Examples
        --------
        A spike that the input makes likely: over all three steps, and over its own step only:

        >>> import glmbrian as glm
        >>> population = glm.GLMPopulation.from_kernels([0.0], [[[2.0]]])
        >>> inputs, outputs = [[1], [0], [0]], [[0], [1], [0]]
        >>> round(float(population.log_likelihood(outputs, inputs)), 3)
        -1.513
        >>> round(float(population.log_likelihood(outputs, inputs, [False, True, False])), 3)
        -0.127
        """
        return float(self.log_likelihoods(outputs, inputs, mask, epochs=epochs).sum())

    def log_likelihoods(
        self, outputs: Any, inputs: Any = None, mask: ArrayLike | None = None, *, epochs: Epochs = None
    ) -> NDArray[np.float64]:
        """Return the `log_likelihood` of each neuron's train.

        Parameters
        ----------
        outputs, inputs, mask, epochs
            As for `log_likelihood`.

        Returns
        -------
        ndarray of float, shape (n,)
            In nats, summed over the steps that count.

        Raises
        ------
        ValueError, TypeError
            As for `log_likelihood`.

        Examples
        --------
        >>> import glmbrian as glm
        >>> population = glm.GLMPopulation([0.0, 1.0], {}, {})
        >>> population.log_likelihoods([[1, 1], [0, 1]]).round(3)
        array([-1.386, -0.627])
        """
        return log_likelihoods(*self._with(outputs, inputs, mask, epochs))

    def score(
        self,
        outputs: Any,
        inputs: Any = None,
        mask: ArrayLike | None = None,
        baseline: ArrayLike | None = None,
        *,
        epochs: Epochs = None,
    ) -> NDArray[np.float64]:
        """Return by how much the log-likelihood exceeds that of a constant rate, in bits per spike.

        The log-likelihood of each neuron's train minus that of a constant rate, in bits (to base
        2), divided by the number of spikes.  Score steps that the fit has not seen:
        on its own data a fit always looks better.

        Parameters
        ----------
        outputs, inputs, mask, epochs
            As for `log_likelihood`.
        baseline : array_like of float, shape (n,), optional
            The constant rates, as firing probabilities per step, such as
            ``outputs[fitted].mean(axis=0)``.  By default those of the scored steps
            themselves, the constant rates that are hardest to beat.

        Returns
        -------
        ndarray of float, shape (n,)
            Below 0 where the constant rate is the better model; NaN for neurons without a spike
            in the steps that count, for which bits per spike are not defined.

        Raises
        ------
        ValueError, TypeError
            As for `log_likelihood`, or if `baseline` makes the outputs impossible.

        Examples
        --------
        A neuron that spikes after each input and at no other time, so in half of the steps:

        >>> import numpy as np
        >>> import glmbrian as glm
        >>> population = glm.GLMPopulation.from_kernels([-100.0], [[[200.0]]])
        >>> x = np.tile([[1], [0]], (50, 1))
        >>> population.score(np.roll(x, 1), x).round(6)
        array([2.])
        """
        return bits_per_spike(*self._with(outputs, inputs, mask, epochs), baseline)

    def rescaled_times(
        self,
        outputs: Any,
        inputs: Any = None,
        mask: ArrayLike | None = None,
        random_state: RandomState = None,
        *,
        epochs: Epochs = None,
    ) -> list[NDArray[np.float64]]:
        """Return the intervals between spikes, rescaled so that a true model makes them uniform.

        With p_t the firing probability in step t, q_t = -log(1 - p_t) accumulates over the steps
        between one spike and the next.  In the step of the next spike, -log(1 - r p_t) is added
        instead, with r uniform, which draws where in the step the spike fell.  If the population
        is the true model, these sums xi are independent and exponential, and 1 - exp(-xi) is
        uniform, whatever the length of a step (Haslinger, Pipa and Brown, 2010).  Without the
        random part, a true model would look false unless steps are short.

        Parameters
        ----------
        outputs, inputs
            As for `log_likelihood`.
        mask : array_like of bool, shape (T,), optional
            The steps that count; all by default.  The others are cut out: an interval continues
            after them.
        random_state : int, RandomState, Generator or None
            For the draws r.
        epochs : list of (start, stop), optional
            As for `log_likelihood`.  An interval that an epoch cuts off goes on in the next one:
            left out, long intervals would be missing, and a true model would look false.

        Returns
        -------
        list of ndarray of float
            For each neuron, one number between 0 and 1 for each spike.  The first is for the
            time from the first step to the first spike; the time after the last spike has none.

        Raises
        ------
        ValueError, TypeError
            As for `log_likelihood`, or if `random_state` is not valid.

        Examples
        --------
        >>> import numpy as np
        >>> import glmbrian as glm
        >>> population = glm.GLMPopulation([0.0], {}, {})
        >>> outputs = np.random.default_rng(0).random((1000, 1)) < 0.5
        >>> times = population.rescaled_times(outputs, random_state=0)
        >>> len(times[0]) == int(outputs.sum()), round(float(times[0].mean()), 1)
        (True, 0.5)
        """
        return rescaled_times(*self._with(outputs, inputs, mask, epochs), random_state)

    def ks_test(
        self,
        outputs: Any,
        inputs: Any = None,
        mask: ArrayLike | None = None,
        random_state: RandomState = None,
        *,
        epochs: Epochs = None,
    ) -> KSTest:
        """Test whether spikes are distributed in time as the population says.

        The Kolmogorov-Smirnov test of `rescaled_times` against the uniform distribution.  For
        each neuron, a true model is rejected in 5% of recordings.  A model that was fitted to the
        same data is rejected less often: test on steps that the fit has not seen.

        Parameters
        ----------
        outputs, inputs, mask, random_state, epochs
            As for `rescaled_times`.

        Returns
        -------
        KSTest

        Raises
        ------
        ValueError, TypeError
            As for `rescaled_times`.

        See Also
        --------
        glmbrian.plotting.ks_plot : the picture of the test.

        Examples
        --------
        A model with the right rate but without the refractory step:

        >>> import numpy as np
        >>> import glmbrian as glm
        >>> outputs = np.random.default_rng(0).random((2000, 1)) < 0.5
        >>> outputs[1:] &= ~outputs[:-1]
        >>> glm.fit_population(outputs).ks_test(outputs, random_state=0).rejected
        array([ True])
        """
        return ks_test(self.rescaled_times(outputs, inputs, mask, random_state, epochs=epochs))

    def standard_errors(
        self, outputs: Any, inputs: Any = None, mask: ArrayLike | None = None, *, epochs: Epochs = None
    ) -> StandardErrors:
        """Compute the standard errors of the parameters from data, and keep them in `standard_errors_`.

        A population that `fit_population` has fitted without a penalty or `stable`
        remembers its data: use `standard_errors_` instead.

        They are the square roots of the diagonal of the inverse Fisher information of the given
        data, and hold for parameters at the maximum of the likelihood of these data: fitted
        to them without a penalty.  95% intervals are 1.96 standard errors to either side.

        Parameters
        ----------
        outputs, inputs, mask, epochs
            The data of the fit, as for `log_likelihood`.

        Returns
        -------
        StandardErrors
            With `bias`, `weights` and `feedback_weights` like the population, and the errors
            of kernel values from ``kernel(name)`` and ``feedback_kernels()``.

        Raises
        ------
        ValueError, TypeError
            As for `log_likelihood`; or if a penalty or `stable` has moved the parameters.

        Notes
        -----
        For each neuron, this takes about as long as one product of the design matrix with itself.
        A connection whose weights are all 0 counts as absent.

        Examples
        --------
        The bias of a neuron that spikes in one step of ten, from 900 steps:

        >>> import numpy as np
        >>> import glmbrian as glm
        >>> outputs = np.arange(900)[:, np.newaxis] % 10 == 0
        >>> population = glm.fit_population(outputs)
        >>> population.standard_errors(outputs).bias.round(4)
        array([0.1111])
        """
        self.parameters.require_maximum("standard errors")
        found = fisher_standard_errors(*self._with(outputs, inputs, mask, epochs))
        self.known_standard_errors = found
        return found

    @property
    def standard_errors_(self) -> StandardErrors:
        """Standard errors of the parameters, computed at first use from the data of the fit."""
        if self.known_standard_errors is None:
            data = self._data_of_fit("standard errors", "standard_errors(outputs, inputs)")
            self.known_standard_errors = fisher_standard_errors(self.parameters, data)
        return self.known_standard_errors

    def __getstate__(self):
        # The data of the fit may be large, and stay where they are.
        return {name: value for name, value in vars(self).items() if name != "fitted_to"}

    def connectivity(
        self, kernel: str = "coupling", measure: str = "sum", test: str | None = None
    ) -> Connectivity:
        """Return the effective coupling of each pair of neurons, and its significance.

        A significant pair is a correlated one, given all other inputs of the model: it may be connected, or
        driven by a common input that the model lacks (drift, states of the network, neurons that were
        not recorded).

        Parameters
        ----------
        kernel : str
            Name of the kernel between neurons.
        measure : {"sum", "norm", "peak"}
            The number that sums up a kernel: its sum over lags, the total effect of a spike on
            the potential; the root of its sum of squares with the sign of the sum; or its value
            that is largest in size.  The last two do not vanish for kernels that change sign.
        test : {"likelihood-ratio", "wald", "none"}, optional
            "likelihood-ratio" compares the maximum of the likelihood with and without each pair.  It
            needs a few passes over the data of the fit for all pairs together, at first use, and is
            kept.  "wald" asks how many standard errors a pair's weights are from 0: it needs only
            `standard_errors_`, but with few coincidences its p values are often many times too
            small, and it knows nothing of kernels that grow without bound.  By default the
            likelihood ratio if the data of the fit are at hand or it is known already, else
            Wald's test if standard errors are known, and else none.

        Returns
        -------
        Connectivity
            Without significance if nothing was tested.

        Raises
        ------
        ValueError, TypeError
            If there is no such kernel, measure or test.
        AttributeError
            If a test is given by its name, and the data of the fit are not known or a penalty
            has moved the parameters.

        See Also
        --------
        test_connections : tests with data that are given.
        glmbrian.plotting.plot_connectivity : draws it.

        Examples
        --------
        >>> import glmbrian as glm
        >>> population = glm.GLMPopulation.from_kernels([-1.0], {"coupling": [[[3.0, -1.0]]]})
        >>> population.connectivity().strength
        array([[2.]])
        """
        self._require_kernel(kernel, "kernel")
        choice(measure, "measure", tuple(MEASURES))
        if test is None:  # the best of which the data are known
            test = "none" if self.known_standard_errors is None else "wald"
            if kernel in self.known_likelihood_ratios or self.fitted_to is not None:
                test = "likelihood-ratio"
        tests = {
            "likelihood-ratio": lambda: self._likelihood_ratios(kernel),
            "wald": lambda: wald_statistics(
                self.weights[kernel], self.standard_errors_.covariances[kernel]
            ),
            "none": lambda: None,
        }
        statistic = tests[choice(test, "test", tuple(tests))]()
        unbounded = getattr(self.fit_, "unbounded", {}).get(kernel)
        return connectivity(self.parameters, kernel, measure, test, statistic, unbounded)

    def test_connections(
        self,
        outputs: Any,
        inputs: Any = None,
        mask: ArrayLike | None = None,
        kernel: str = "coupling",
        *,
        epochs: Epochs = None,
    ) -> Connectivity:
        """Test by its likelihood ratio whether each pair of a kernel is needed, and keep the results.

        A population that `fit_population` has fitted without a penalty or `stable` remembers its
        data: use `connectivity` instead.

        Parameters
        ----------
        outputs, inputs, mask, epochs
            The data of the fit, as for `log_likelihood`.
        kernel : str
            Name of the kernel between neurons.

        Returns
        -------
        Connectivity
            As from `connectivity`, which from now on uses these tests.

        Raises
        ------
        ValueError, TypeError
            As for `log_likelihood`; if there is no such kernel; or if a penalty or `stable` has moved
            the parameters.

        Notes
        -----
        Without a pair, the other parameters have another maximum.  The searches for these begin
        where the Fisher information says, and end when less than 0.005 nats can be gained.  This takes
        about as many passes over the data as there are sources, instead of a dozen for each.

        Examples
        --------
        >>> import numpy as np
        >>> import glmbrian as glm
        >>> x, y = np.random.default_rng(0).random((2, 500, 1)) < 0.3
        >>> y[1:] |= x[:-1]
        >>> fit = glm.fit_population(y, x, {"coupling": glm.IndicatorBasis(2)}, tol=1e-4)
        >>> bool(fit.test_connections(y, x).p_value[0, 0] < 1e-9)
        True
        """
        self._require_kernel(kernel, "kernel")
        self.parameters.require_maximum("likelihood ratios")
        self._likelihood_ratios(kernel, read([self.parameters], outputs, inputs, mask, epochs))
        return self.connectivity(kernel)

    def is_stable(
        self,
        rates: ArrayLike | None = None,
        max_rate: ArrayLike | None = None,
        recurrent: str | Sequence[str] | None = None,
        drive: ArrayLike | None = None,
    ) -> Stability:
        """Predict from a gain whether a free-running simulation stays bounded.

        A fit of history and coupling may run away when its own spikes are fed back: at a high rate it
        excites itself to an even higher one.  For each neuron, F(r) is the rate at which it fires
        while its own past, and all neurons that excite it, fire at r.  The gain is the
        largest F(r) / r for r from `max_rate` to 1 spike per step.  If it is below 1, activity
        that has exceeded `max_rate` falls back.

        Parameters
        ----------
        rates : array_like of float, shape (n,) or a number, optional
            Rates at rest, in spikes per step, such as ``outputs.mean(axis=0)``; by default
            `fitted_rates`, or if they are not known, the rates from the bias and `drive` alone.
        max_rate : array_like of float, shape (n,) or a number, optional
            The rates above which a neuron counts as having run away.  By default the smaller of
            ten times `rates` and their square root.
        recurrent : str or list of str, optional
            The kernels through which the population is an input to itself; by default
            "coupling", if there is one.
        drive : array_like of float, shape (n,) or (T, n), optional
            What other inputs add to the potentials, such as ``population.drive(stimulus)``; by
            default nothing.  Of a drive that varies in time, only the mean and variance count.

        Returns
        -------
        Stability
            True if the gain is below 1.

        Raises
        ------
        ValueError, TypeError
            If rates are not between 0 and 1, shapes do not match, or a recurrent kernel is not
            between the neurons.

        Notes
        -----
        F is a quasi-renewal approximation (Gerhard, Deger and Truccolo, 2017): the effect of the
        neuron's last spike is exact; all earlier spikes, and those of other neurons, are taken to
        be independent, with a normal sum.  So this is a prediction, not a proof: activity may
        exceed `max_rate` by chance, for a while, and strongly correlated spikes may do what
        independent ones would not.  It is cautious in networks: neurons that inhibit stay at
        their rates at rest while those that excite rise, so that networks in which only rising
        inhibition keeps excitation in check are called unstable.

        See Also
        --------
        stabilised : the stable population closest to a fit.

        Examples
        --------
        >>> import glmbrian as glm
        >>> def neuron(excitation):
        ...     return glm.GLMPopulation([-4.0], {}, {}, glm.IndicatorBasis(20), [[excitation] * 20])
        >>> neuron(0.1).is_stable()
        <Stability: stable, gain 0.146>
        >>> bool(neuron(0.5).is_stable())
        False
        """
        rates = self.fitted_rates if rates is None else rates
        population = self.parameters
        return stability(population, checked_setting(population, rates, max_rate, recurrent, drive))

    def stabilised(
        self,
        outputs: Any,
        inputs: Any = None,
        mask: ArrayLike | None = None,
        max_rate: ArrayLike | None = None,
        recurrent: str | Sequence[str] | None = None,
        bound: float = 0.7,
        *,
        epochs: Epochs = None,
    ) -> "GLMPopulation":
        """Return the stable population that is closest to this fit in likelihood.

        Neurons whose gain is at most `bound` stay as they are.  The others get the bias, feedback and
        recurrent weights of the largest log-likelihood under this bound, found by sequential
        quadratic programming.  Kernels of other inputs stay as they are, and their mean and
        variance count as the drive of `is_stable`.

        Parameters
        ----------
        outputs, inputs, mask, epochs
            The data of the fit, as for `log_likelihood`.
        max_rate, recurrent
            As for `is_stable`, with the rates of the data.
        bound : float
            Largest gain, above 0 and below 1.  It is well below 1 by default, since close to 1
            chance excursions are large and last long.

        Returns
        -------
        GLMPopulation

        Raises
        ------
        ValueError, TypeError
            As for `log_likelihood` and `is_stable`, or if a neuron's rate is not below `max_rate`
            times `bound`, so that no gain can be below the bound.

        Notes
        -----
        What is maximised is the log-likelihood minus its slope at the fit.  Without the constraint
        its maximum is therefore the fit itself, even if a penalty has shaped the fit.  A weight
        that the data leave undetermined stays near its value in the fit.

        Examples
        --------
        >>> import numpy as np
        >>> import glmbrian as glm
        >>> outputs = np.zeros((600, 1))
        >>> outputs[100:120:2] = outputs[300:330:3] = outputs[500:504] = 1
        >>> fit = glm.fit_population(outputs, feedback_basis=glm.CustomBasis(np.ones((10, 1))))
        >>> bool(fit.is_stable()), bool(fit.stabilised(outputs).is_stable())
        (False, True)
        """
        population = self._with(outputs, inputs, mask, epochs)
        stable, rates = stabilise(*population, max_rate, recurrent, bound)
        result = self.from_parameters(stable)
        result.fitted_rates = rates
        return result

    def drive(self, stimulus: ArrayLike, kernel: str = "stimulus") -> NDArray[np.float64]:
        """Return the part of the membrane potential that a continuous stimulus causes.

        Parameters
        ----------
        stimulus : array_like of float, shape (T, n_source)
            One sample per step.
        kernel : str
            Name of the kernel that filters it.

        Returns
        -------
        ndarray of float, shape (T, n)
            Step t sees the samples up to ``t - 1``.  For a simulation, pass it to
            ``population.neurons(drive=...)`` as a `brian2.TimedArray` with the
            population's `dt`.

        Raises
        ------
        ValueError, TypeError
            If there is no such kernel, or shapes do not match.

        Examples
        --------
        >>> import glmbrian as glm
        >>> from brian2 import Network, StateMonitor, TimedArray, ms, prefs
        >>> prefs.codegen.target = "numpy"
        >>> population = glm.GLMPopulation.from_kernels([-2.0], [[[1.0, 0.5]]])
        >>> drive = population.drive([[1.0], [0.0], [0.0], [3.0], [0.0]])
        >>> drive[:, 0].tolist()
        [0.0, 1.0, 0.5, 0.0, 3.0]
        >>> neurons = population.neurons(drive=TimedArray(drive, dt=1 * ms), dt=1 * ms)
        >>> monitor = StateMonitor(neurons, "u", record=True, when="end")
        >>> Network(neurons, monitor).run(5 * ms)
        >>> monitor.u[0]
        array([-2. , -1. , -1.5, -2. ,  1. ])
        """
        self._require_kernel(kernel, "kernel")
        basis, weights = self.kernels[kernel], self.weights[kernel]
        samples, breaks = dense_series(stimulus, "stimulus", self.dt)
        samples = finite_array(samples, "stimulus", ("T", len(weights)))
        require_steps(samples, "stimulus")
        pieces = np.split(samples, breaks)
        bias = np.zeros(self.n)
        return np.concatenate(
            [potential_of_inputs(piece, basis.matrix, weights, bias) for piece in pieces]
        )

    def neurons(self, **kwds: Any) -> GLMNeurons:
        """Return `GLMNeurons` with these parameters.

        Parameters
        ----------
        **kwds
            Passed to `GLMNeurons`: ``dt``, ``random_state``, ``name`` and so on.

        Returns
        -------
        GLMNeurons
            Without synapses; see `synapses`.  Their time step is `dt`: if Brian's default
            clock has another, they get their own clock.  If the population has no kernels,
            they get an unused kernel ``"stimulus"`` of one lag.

        Raises
        ------
        TypeError, ValueError
            As for `GLMNeurons`; if ``dt`` or ``clock`` differ from the population's `dt`; or
            if the step is unknown: the population's `dt` is None, ``dt`` is not given, and
            Brian's default clock still has its initial 0.1 ms.  Also when a run begins, if
            the step of the neurons' clock has changed since.

        Examples
        --------
        >>> import glmbrian as glm
        >>> from brian2 import Network, ms, prefs
        >>> prefs.codegen.target = "numpy"
        >>> population = glm.GLMPopulation.from_kernels([-1.0], {"coupling": [[[-2.0]]]})
        >>> neurons = population.neurons(dt=1 * ms, random_state=1)
        >>> coupling = population.synapses(neurons, neurons, "coupling")
        >>> Network(neurons, coupling).run(20 * ms)
        """
        return neurons_of(self.parameters, **kwds)

    def synapses(
        self,
        source: Any,
        target: GLMNeurons,
        kernel: str = "stimulus",
        connect: Any = True,
        **kwds: Any,
    ) -> GLMSynapses:
        """Return `GLMSynapses` with the weights of one kernel.

        Parameters
        ----------
        source : brian2 spike source
            As many cells as the kernel has sources.
        target : GLMNeurons
            Neurons of this population (see `neurons`).
        kernel : str
            Name of the kernel.
        connect : bool, str or pair of arrays
            As for `GLMSynapses`.  Pairs that are not connected have no weights.
        **kwds
            Passed to `GLMSynapses`.

        Returns
        -------
        GLMSynapses

        Raises
        ------
        ValueError, TypeError
            If there is no such kernel, source or target have the wrong size, or the target's
            time step differs from the population's.

        Examples
        --------
        >>> import glmbrian as glm
        >>> from brian2 import Network, SpikeGeneratorGroup, ms, prefs
        >>> prefs.codegen.target = "numpy"
        >>> population = glm.GLMPopulation.from_kernels([-1.0, -1.0], [[[2.0], [-3.0]]])
        >>> inputs = SpikeGeneratorGroup(1, [0], [0] * ms, dt=1 * ms)
        >>> neurons = population.neurons(dt=1 * ms)
        >>> synapses = population.synapses(inputs, neurons)
        >>> Network(inputs, neurons, synapses).run(2 * ms)
        >>> neurons.u[:]
        array([ 1., -4.])
        """
        self._require_kernel(kernel, "kernel")
        return synapses_of(self.parameters, source, target, kernel, connect, **kwds)

    def save(self, path: str | Path) -> None:
        """Write the population to a ``.npz`` file.

        The file holds ``bias``, ``activation``, for each kernel ``basis:name`` and
        ``weights:name``, the same with the name ``feedback`` if there is feedback, and ``dt``
        in seconds if it is known.  ``format`` is the version of this format, and ``checksum``
        reveals whether any part was changed.  The file can be read with
        ``numpy.load(path, allow_pickle=False)``.

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
        ValueError
            If the activation does not come with the package.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np, glmbrian as glm
        >>> population = glm.GLMPopulation.from_kernels([-1.0], [[[2.0, 1.0]]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "population.npz")
        ...     population.save(path)
        ...     with np.load(path, allow_pickle=False) as file:
        ...         sorted(file)
        ['activation', 'basis:stimulus', 'bias', 'checksum', 'format', 'weights:stimulus']
        """
        save_population(self.parameters, path)

    @classmethod
    def load(cls, path: str | Path) -> "GLMPopulation":
        """Read a population from a file written by `save`.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        GLMPopulation
            Its bases are `CustomBasis`.

        Raises
        ------
        OSError
            If the file cannot be read.
        ValueError
            If it is not such a file, or was changed after it was written.

        Examples
        --------
        >>> import os, tempfile
        >>> import glmbrian as glm
        >>> population = glm.GLMPopulation.from_kernels([-1.0], [[[2.0, 1.0]]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "population.npz")
        ...     population.save(path)
        ...     loaded = glm.GLMPopulation.load(path)
        >>> loaded.kernel("stimulus")
        array([[[2., 1.]]])
        """
        return cls.from_parameters(load_population(path))

    def _with(
        self, outputs: Any, inputs: Any, mask: Any, epochs: Epochs
    ) -> tuple[PopulationParameters, RecordedData]:
        """Return the parameters, and recorded data for them."""
        population = self.parameters
        return population, read([population], outputs, inputs, mask, epochs)

    def _data_of_fit(self, what, call):
        """Return the data of the fit; raise an AttributeError if `what` cannot be computed from them.

        From other data, the method `call` computes it.
        """
        self.parameters.require_maximum(what, error=AttributeError)
        if self.fitted_to is None:
            raise AttributeError(
                f"the {what} of this population are not known, since it was not made by fit_population, or "
                "it is a copy without the data of the fit. If its parameters are at the maximum of the "
                f"likelihood of your data, call population.{call}"
            )
        return self.fitted_to

    def _likelihood_ratios(self, kernel, data=None):
        """Return the likelihood ratios of a kernel, which are kept; from the data of the fit at first use."""
        known = self.known_likelihood_ratios
        if data is None and kernel not in known:
            call = f"test_connections(outputs, inputs, kernel={kernel!r})"
            data = self._data_of_fit("likelihood ratios", call)
        if data is not None:
            # Populations share the empty dict until they have ratios.
            found = likelihood_ratios(self.parameters, data, kernel)
            self.known_likelihood_ratios = known = {**known, kernel: found}
        return known[kernel]

    def _require_kernel(self, name, argument):
        if not self.kernels:
            raise ValueError(f"{argument}: this population has no kernels")
        choice(name, argument, tuple(self.kernels))

    def __repr__(self):
        kernels = ", ".join(
            f"{name}: {len(self.weights[name])} sources, {basis!r}"
            for name, basis in self.kernels.items()
        )
        return (
            f"<GLMPopulation: n={self.n}, {kernels or 'no kernels'}, feedback_basis={self.feedback_basis!r}, "
            f"activation={str(self.observations)!r}, dt={self.dt}>"
        )

    def _repr_html_(self):
        rows = {
            f"kernel {name}": f"{len(self.weights[name])} sources, {self._described(basis)}"
            for name, basis in self.kernels.items()
        }
        rows["feedback"] = (
            "none" if self.feedback_basis is None else self._described(self.feedback_basis)
        )
        rows["activation"] = str(self.observations)
        rows["step"] = "unknown (dt is None)" if self.dt is None else self.dt
        return html_table(f"GLMPopulation of {self.n} neurons", rows)

    def _described(self, basis):
        duration = "" if self.dt is None else f", which are {basis.window * self.dt}"
        return f"{basis!r} over {basis.window} steps{duration}"
