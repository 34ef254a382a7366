"""GLM neurons: stochastic spiking neurons in discrete time, as a Brian 2 group."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from brian2 import Clock, Equations, NeuronGroup, Quantity, TimedArray
from numpy.typing import ArrayLike, NDArray

from ..core.activations import Activation, get_activation
from ..core.bases import Basis, as_basis
from ..core.randomness import RandomState, derive_keys, split_key
from ..support.display import Described
from ..support.renamed import renamed, warn_of_former_name
from ..support.validation import broadcast_array, check_size, integer
from .arguments import check_brian_arguments
from .attributes import add_attributes
from .drive import NEURON_INDEX, checked_drive
from .filters import StateUpdater
from .internals.arrays import changed_by_operations, run_args
from .internals.code_objects import generate_in_double_precision, share_code_of_runs
from .internals.programs import warn_of_many_compilers
from .internals.views import UnknownName, explain_unknown_variables, refuse_values, values_taken
from .kernels import channel_names, feedback_weight_names, named_kernels, stacked, with_feedback
from .neuron_model import neuron_model
from .own_code import check_equations, check_method, check_statements, double_precision_of
from .ring import RING, add_ring, ring_values, ring_variables
from .step_order import POTENTIAL_IS_COMPUTED, check_neurons
from .streams import warn_of_equal_draws
from .target import add_index_alias
from .time_steps import require_step, require_steps_of_bases
from .write_through import WriteThrough

_OUTPUT_DRAWS = 1


#: Attributes, functions and indices of groups and subgroups, which are not variables of the model.
_TAKEN = {
    "activation", "draw_key", "feedback_basis", "filter_state", "fitted_dt", "glm_ring", "glm_ring_arriving",
    "glm_uniform",
    "i", "kernels", "model_variables", "ring", "source", "start", "stop", NEURON_INDEX,
}  # fmt: skip


class GLMNeurons(Described, NeuronGroup):
    """Neurons that spike with a probability given by their membrane potential.

    At each step t a neuron spikes with probability g(u(t)), where::

        u(t) = sum_j alpha_j . x_j(t - window .. t - 1)
               + beta . y(t - window_fb .. t - 1) + bias + drive(t)

    (eq. membrane_potential_GLM): the spikes x of its inputs weighted by synaptic
    kernels alpha = A w (see `GLMSynapses`), and its own spikes y weighted by the
    feedback kernel beta = B v.  A spike in step t first changes u in step t + 1.
    Other drive, such as a continuous stimulus or an injected current, changes u
    immediately.

    Parameters
    ----------
    n : int
        Number of neurons.
    kernels : Basis or dict of str to Basis
        Basis of the synaptic kernels, called ``"stimulus"``, or several by name
        such as ``{"stimulus": basis, "coupling": other_basis}``.
    feedback_basis : Basis, optional
        Basis of the feedback kernel.
    activation : {"sigmoid", "probit", "cloglog"} or Activation
        The function g.
    random_state : None, int, RandomState or Generator
        Makes the spikes reproducible, and the same on every device and target.  ``None``
        takes a state from NumPy's global generator, which `brian2.seed` sets on the
        runtime device.
    drive : str or TimedArray, optional
        What is added to u, without unit: an expression in ``t``, ``i`` and names
        that Brian finds in `namespace` or around the run, such as
        ``"gain * stimulus(t, i)"`` or ``"0.5 * randn()"``; or a TimedArray, either
        one-dimensional (the same for all neurons) or of shape (n_steps, n).
    namespace : dict, optional
        Names for `drive`, which take precedence over those around the run.
    dt, clock, order, name
        As for `brian2.NeuronGroup`; one step of the model is one `dt`.
    equations : str or brian2.Equations, optional
        Equations of your own beside those of the model: traces, currents, parameters.
        Differential ones are integrated in each step after u is known, and see it.
    reset : str, optional
        Statements of your own when a neuron spikes, such as ``"calcium += 1"``.  They may change your
        variables and the bias.
    method : str, optional
        How Brian integrates `equations`; by default it chooses.
    stream : str, optional
        Groups with the same `random_state` draw the same numbers, and a run warns about
        this, unless their streams have different names.

    Attributes
    ----------
    u : array of float, shape (n,)
        Membrane potential, without unit.
    bias : array of float, shape (n,)
    feedback_weights : array of float, shape (n, n_basis)
        Weights v of the feedback kernel.  May be set as a whole or by index.
    clamp : array of int, shape (n,)
        0: the neuron is free; 1: it spikes in every step; -1: it is silent.
    firing_probability : array of float, shape (n,)
        g(u).
    drive : array of float, shape (n,)
        What is added to u in this step.  Read only; exists only if `drive` is given.
    kernels : dict of str to Basis
    feedback_basis : Basis or None
    activation : Activation

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or out of range.
    NotImplementedError
        If `drive` is a TimedArray, or `equations` or `reset` are given, on the GeNN device.
    DimensionMismatchError, KeyError
        When a run begins, if the expression `drive` has a unit, or uses a name that is
        neither in `namespace` nor defined where the run is called (as the cause of Brian's
        exception).

    Notes
    -----
    Neurons, synapses and training use double precision, whatever Brian's preference
    ``core.default_float_dtype``, so it does not affect results.  There are two exceptions:
    the sums of arriving weights on GeNN, and the numbers that `drive` takes from a namespace
    in C++ standalone.

    Examples
    --------
    Two neurons with a current step after 2 ms:

    >>> import glmbrian as glm
    >>> from brian2 import Network, ms
    >>> basis = glm.RaisedCosineBasis(2, 4)
    >>> neurons = glm.GLMNeurons(2, basis, drive="3 * int(t >= 2*ms)", dt=1 * ms)
    >>> neurons.bias = [-2.0, 0.5]
    >>> network = Network(neurons)
    >>> network.run(2 * ms)
    >>> neurons.u[:]
    array([-2. ,  0.5])
    >>> network.run(1 * ms)
    >>> neurons.u[:]
    array([1. , 3.5])

    A variable that rises with each spike of the neuron, and decays:

    >>> calcium = "dcalcium/dt = -calcium / (10*ms) : 1"
    >>> neurons = glm.GLMNeurons(1, basis, equations=calcium, reset="calcium += 1", dt=1 * ms)
    >>> neurons.clamp = 1  # it spikes in every step
    >>> Network(neurons).run(2 * ms)
    >>> neurons.calcium[:].round(3)
    array([1.905])
    """

    kernels: dict[str, Basis]
    feedback_basis: Basis | None
    activation: Activation
    filter_state: list[str]
    model_variables: frozenset[str]
    #: The most steps between two times that the filters are cleared, if a subclass knows this.
    #: Longer lags then never matter, so exponential kernels can have a faster filter.
    presentation_steps: ClassVar[int | None] = None

    @renamed(feedback="feedback_basis")
    def __init__(
        self,
        n: int,
        kernels: Basis | dict[str, Basis],
        feedback_basis: Basis | None = None,
        activation: str | Activation = "sigmoid",
        random_state: RandomState = None,
        drive: str | TimedArray | None = None,
        namespace: Mapping[str, Any] | None = None,
        dt: Quantity | None = None,
        clock: Clock | None = None,
        order: int = 0,
        name: str = "glmneurons*",
        stream: str | None = None,
        equations: str | Equations | None = None,
        reset: str | None = None,
        method: Any = None,
    ) -> None:
        check_brian_arguments(dt, clock, order, name)
        n = integer(n, "n")
        kernels = named_kernels(kernels)
        if feedback_basis is not None:
            feedback_basis = as_basis(feedback_basis, "feedback_basis")
        activation = get_activation(activation)
        matrix = stacked([basis.matrix for basis in with_feedback(kernels, feedback_basis).values()])
        check_size(
            n * sum(matrix.shape),
            "n: values of the filters, n * (window + number of basis functions)",
            "use fewer neurons or a shorter window",
        )
        _check_namespace(namespace)
        added = checked_drive(drive, n)
        draw_key = split_key(derive_keys(random_state, _OUTPUT_DRAWS, stream=stream)[0])
        model = neuron_model(kernels, feedback_basis, activation, added, self.presentation_steps)
        own, own_reset = self._check_own_code(model, equations, reset, method)
        super().__init__(
            n,
            Equations(model.equations) + own if own else model.equations,
            method=StateUpdater(model.update, own, method),
            threshold=model.threshold,
            reset=model.reset + own_reset,
            namespace={**(namespace or {}), **model.namespace},
            dtype={**double_precision_of(own), **model.dtype},
            dt=dt,
            clock=clock,
            order=order,
            name=name,
        )
        self._prepare(
            model,
            kernels=kernels,
            feedback_basis=feedback_basis,
            activation=activation,
            draw_key=draw_key,
            _drive_names=added.names,
        )
        if RING in model.filter_state:
            add_ring(self, matrix)

    @classmethod
    def _check_own_code(cls, model, equations, reset, method):
        """Check the user's own code, and return what Brian takes of `equations` and `reset`."""
        taken = model.names | _TAKEN | set(dir(cls))
        own = check_equations(equations, "equations", taken)
        own_reset = check_statements(reset, "reset", taken - {"bias"})
        check_method(method, own)
        return own, own_reset

    def _prepare(self, model, **attributes):
        """Make a Brian group into GLM neurons."""
        if not self.event_codes["spike"]:
            # Brian asks for a reset, even if there is nothing to do.
            self.resetter["spike"].active = False
        add_index_alias(self, NEURON_INDEX)
        generate_in_double_precision(self)
        share_code_of_runs(self)
        add_attributes(
            self,
            filter_state=model.filter_state,
            fitted_dt=None,
            model_variables=model.names,
            # What adds the rows of synapses, by the name under which code calls it: see `rows.RowCode`.
            row_code={},
            **attributes,
        )
        explain_unknown_variables(self, self._explanations())
        refuse_values(self, "u", POTENTIAL_IS_COMPUTED)
        self.key_low, self.key_high = self.draw_key

    def _explanations(self):
        """Return what to say of names that look like variables of the model."""
        filtered = with_feedback(self.kernels, self.feedback_basis)
        texts = {
            key: f"the input of this kernel is in {', '.join(channel_names(key, basis))}"
            for key, basis in filtered.items()
        }
        if self.feedback_basis is None:
            return {**texts, "feedback_weights": "these neurons have no feedback kernel"}
        weights = ", ".join(feedback_weight_names(self.feedback_basis))
        return {**texts, "feedback_weights": f"the weights of the feedback kernel are called {weights}"}

    @property
    def feedback_weights(self) -> WriteThrough:
        """Weights v of the feedback kernel, shape (n, n_basis)."""
        self._require_feedback()
        return WriteThrough(self._read_feedback(), "feedback_weights", self._set_feedback_items)

    @feedback_weights.setter
    def feedback_weights(self, weights: ArrayLike) -> None:
        for name, column in self._feedback_columns(weights).items():
            setattr(self, name, column)

    def _read_feedback(self):
        columns = [getattr(self, f"{name}_")[:] for name in feedback_weight_names(self.feedback_basis)]
        return np.stack(columns, axis=1)

    def _set_feedback_items(self, item, value):
        weights = self._read_feedback()
        weights[item] = value
        self.feedback_weights = weights
        return weights

    def _feedback_columns(self, weights):
        """Return the part of `weights` for each variable, as a dict."""
        self._require_feedback()
        shape = (len(self), self.feedback_basis.n_basis)
        weights = broadcast_array(weights, "feedback_weights", shape)
        return dict(zip(feedback_weight_names(self.feedback_basis), weights.T))

    def run_args(
        self, bias: ArrayLike | None = None, feedback_weights: ArrayLike | None = None
    ) -> dict[Any, np.ndarray]:
        """Return arguments for ``device.run(run_args=...)`` to run a program with other values.

        Parameters
        ----------
        bias : array_like of float, shape (n,) or ()
        feedback_weights : array_like of float
            As for the attribute.

        Returns
        -------
        dict

        Notes
        -----
        For C++ standalone programs that are already built, with Brian 2.6 or newer.

        Examples
        --------
        After ``device.build()``, call ``device.run(run_args=neurons.run_args(bias=-3))``:

        >>> import glmbrian as glm
        >>> neurons = glm.GLMNeurons(2, glm.IndicatorBasis(1), feedback_basis=glm.IndicatorBasis(2))
        >>> [view.name for view in neurons.run_args(-3, feedback_weights=-1)]  # doctest: +SKIP
        ['bias', 'feedback_weight_0', 'feedback_weight_1']
        """
        values = {}
        if bias is not None:
            values["bias"] = broadcast_array(bias, "bias", (len(self),))
        if feedback_weights is not None:
            values.update(self._feedback_columns(feedback_weights))
        return run_args({(self, name): value for name, value in values.items()})

    @property
    def feedback(self) -> Basis | None:
        """The former name of `feedback_basis`."""
        warn_of_former_name("feedback", "feedback_basis")
        return self.feedback_basis

    def feedback_kernels(self) -> NDArray[np.float64]:
        """Return the feedback kernels beta = B v.

        Returns
        -------
        ndarray of float, shape (n, window)
            Entry ``l - 1`` is what a spike adds to the neuron's potential `l` steps later.

        Raises
        ------
        AttributeError
            If these neurons have no feedback kernel.

        Examples
        --------
        Neurons with a refractory period:

        >>> import glmbrian as glm
        >>> neurons = glm.GLMNeurons(2, glm.IndicatorBasis(1), feedback_basis=glm.IndicatorBasis(3))
        >>> neurons.feedback_weights = [[-4.0, -2.0, -1.0], [-8.0, 0.0, 0.0]]
        >>> neurons.feedback_kernels()
        array([[-4., -2., -1.],
               [-8.,  0.,  0.]])
        """
        self._require_feedback()
        return self.feedback_basis.kernels(self.feedback_weights)  # type: ignore[union-attr]

    def _require_feedback(self):
        if self.feedback_basis is None:
            raise AttributeError(
                "these neurons have no feedback kernel: create them with "
                "GLMNeurons(..., feedback_basis=basis)"
            )

    def get_states(self, *args: Any, level: int = 0, **kwds: Any) -> Any:
        """Like `brian2.NeuronGroup.get_states`, but includes all input that has arrived."""
        states = super().get_states(*args, level=level + 1, **kwds)
        if isinstance(states, dict) and RING in states:
            # Brian treats the ring as one number, and reads only the first.
            states[RING] = ring_values(self.variables[RING].get_value())
        return states

    def set_states(self, values: Any, *args: Any, level: int = 0, **kwds: Any) -> None:
        """Like `brian2.NeuronGroup.set_states`, for what `get_states` returned."""
        if isinstance(values, dict) and RING in values:
            values = dict(values)
            self.variables[RING].set_value(values.pop(RING))
        with values_taken(self, "u"):
            super().set_states(values, *args, level=level + 1, **kwds)

    def before_run(self, run_namespace: Any) -> None:
        # A population sets `fitted_dt`: its parameters are valid only for that step.
        require_step(self, self.fitted_dt, "neurons")
        require_steps_of_bases(self.kernels, self.feedback_basis, self.clock.dt)
        try:
            self.resolve_all(self._drive_names, run_namespace)
        except KeyError as error:
            raise UnknownName(
                f"drive uses a name that is neither in GLMNeurons(..., namespace={{name: value}}) nor "
                f"defined where the run is called: {error.args[0]}"
            ) from None
        check_neurons(self)
        warn_of_equal_draws(self)
        warn_of_many_compilers(self)
        super().before_run(run_namespace)
        if RING in self.variables:
            channels = (self.variables[name] for name in self.filter_state)
            changed_by_operations([*channels, *ring_variables(self)])

    def _title(self):
        return f"{type(self).__name__} {self.name!r} with {len(self)} neurons"

    def _description(self):
        return {
            "activation": self.activation.name,
            "kernels": ", ".join(f"{name!r} {basis!r}" for name, basis in self.kernels.items()),
            "feedback": self.feedback_basis,
        }

    def clear(self) -> None:
        """Forget all spikes that have arrived, resetting every filter.

        Examples
        --------
        A spike has an effect for three steps, but not after `clear`:

        >>> import glmbrian as glm
        >>> from brian2 import Network, SpikeGeneratorGroup, ms, prefs
        >>> prefs.codegen.target = "numpy"
        >>> inputs = SpikeGeneratorGroup(1, [0], [0] * ms, dt=1 * ms)
        >>> neurons = glm.GLMNeurons(1, glm.IndicatorBasis(3), dt=1 * ms)
        >>> synapses = glm.GLMSynapses(inputs, neurons)
        >>> synapses.w = 2
        >>> network = Network(inputs, neurons, synapses)
        >>> network.run(2 * ms)
        >>> neurons.u[:]
        array([2.])
        >>> neurons.clear()
        >>> network.run(1 * ms)
        >>> neurons.u[:]
        array([0.])
        """
        for name in self.filter_state:
            self.variables[name].set_value(0)
        self.variables["u"].set_value(0)


def _check_namespace(namespace):
    if not isinstance(namespace, (Mapping, type(None))) or not all(
        isinstance(key, str) for key in namespace or {}
    ):
        raise TypeError(f"namespace must be a dict of names to values, got {namespace!r}")
