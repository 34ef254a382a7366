"""Synapses of GLM neurons: each holds the weights of a temporal kernel."""

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from brian2 import Equations, Quantity, Synapses, have_same_dimensions, second
from brian2.groups.subgroup import Subgroup
from numpy.typing import ArrayLike, NDArray

from ..core.bases import Basis
from ..core.randomness import RandomState
from ..support.display import Described
from ..support.validation import broadcast_array, check_size, choice, finite_array
from .arguments import check_brian_arguments
from .attributes import add_attributes
from .connectivity import check_distinct, evaluate_weights, find_pairs
from .filters import STEP_COUNT
from .internals.arrays import changed_by_operations, remember_values, run_args
from .internals.code_objects import (
    generate_in_double_precision,
    replace_pathway_code,
    share_code_of_runs,
)
from .internals.events import require_events
from .internals.messages import time_steps_may_differ
from .internals.views import explain_unknown_variables
from .kernels import channel_names
from .neurons import GLMNeurons
from .own_code import (
    check_assignments,
    check_equations,
    check_statements,
    double_precision_of,
)
from .rows import RowCode, find_rows, operation_name, row_operation
from .subgroups import span, whole_group
from .target import current_target
from .write_through import WriteThrough

#: Arguments of `brian2.Synapses` that `GLMSynapses` does not accept, with reasons or alternatives.
_OWN = {
    "pre": "write on_pre",
    "post": "write on_post",
    "dtype": "weights are held in double precision",
    "multisynaptic_index": "there is only one synapse per pair",
}


#: Attributes and indices of the synapses, which are not variables of a model.
_TAKEN = {
    "basis", "delay", "i", "j", "kernel", "N_incoming", "N_outgoing", "post", "pre", "source", "target", "w",
}  # fmt: skip

#: What no statement may change: which neurons a synapse connects.
_FIXED = {"i", "j", "N_incoming", "N_outgoing"}


class GLMSynapses(Described, Synapses):
    """Synapses whose weights w define kernels alpha = A w.

    A spike of the source adds w to the channels of the target, which filters them by
    the basis A of the kernel: eq. Ex_GLM_1.  This holds for stimulus and lateral coupling
    kernels.  If source and target have different time steps, a spike counts in the target's
    step in which it arrives, and delays are in steps of the source.

    Parameters
    ----------
    source : brian2 spike source
        Any group that spikes: `RateEncoder`, PoissonGroup, SpikeGeneratorGroup,
        NeuronGroup, another `GLMNeurons`, or a Subgroup of one.
    target : GLMNeurons or Subgroup of one
    kernel : str
        Name of one of the target's kernels.
    connect : bool, str or pair of arrays
        ``True`` connects all pairs, ``False`` none yet (see `connect`).  To connect some,
        give a condition in ``i``, ``j``, ``N_pre``, ``N_post`` and ``rand()`` such as
        ``"i != j"``, or index arrays ``(i, j)``.
    random_state : None, int, RandomState or Generator
        Makes the draws of ``rand()`` reproducible, and the same on every device.  ``None``
        takes a state from NumPy's global generator, which `brian2.seed` sets on the runtime
        device.
    model : str or brian2.Equations, optional
        Variables of your own for each synapse, such as traces, beside the weights ``w_0``,
        ``w_1``, ....
    on_pre : str, optional
        Statements of your own for a spike of the source that arrives, after the weights are
        added to the target's channels.
    **kwds
        Passed to `brian2.Synapses`: ``delay`` (in addition to the lag of one step that
        every kernel has), ``on_event`` (an event of the source that counts in place of its spikes),
        ``on_post`` (statements for a spike of the target, where the
        weights are called ``w_0``, ``w_1``, ...), ``method`` (how Brian integrates `model`), ``namespace``,
        ``dt``, ``clock``, ``order``, ``name``.

    Attributes
    ----------
    w : ndarray of float, shape (n_source, n_target, n_basis)
        Weights of the kernels; 0 where there is no synapse.  May be set as a whole, by
        index as in ``synapses.w[0, 1] = 2`` or ``synapses.w *= 2``, or by an expression
        in ``i``, ``j``, ``N_pre`` and ``N_post``.  Values for pairs without a synapse are
        ignored; an index that selects no synapse at all is an error.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or out of range.
    NotImplementedError
        On a standalone device, when `w` or `kernels` is read after a run has been described
        and before the program has run.

    Examples
    --------
    >>> import glmbrian as glm
    >>> neurons = glm.GLMNeurons(3, {"coupling": glm.IndicatorBasis(5)})
    >>> lateral = glm.GLMSynapses(neurons, neurons, "coupling", "i != j")
    >>> lateral.w = 0.5
    >>> lateral.w[0, 1] = [2, 1, 0, 0, 0]
    >>> lateral.w[0, :, 0]
    array([0. , 2. , 0.5])
    >>> lateral.kernels().shape
    (3, 3, 5)
    """

    basis: Basis
    kernel: str

    def __init__(
        self,
        source: Any,
        target: GLMNeurons | Subgroup,
        kernel: str = "stimulus",
        connect: Any = True,
        random_state: RandomState = None,
        model: str | Equations | None = None,
        on_pre: str | None = None,
        **kwds: Any,
    ) -> None:
        neurons = whole_group(target)
        if not isinstance(neurons, GLMNeurons):
            raise TypeError(f"target must be GLMNeurons or a subgroup of them, got {target!r}")
        _check_keywords(kwds)
        require_events(source, "source", _event(kwds, "pre"))
        choice(kernel, "kernel", tuple(neurons.kernels))
        basis = neurons.kernels[kernel]
        pre, post = find_pairs(connect, len(source), len(target), random_state=random_state)
        check_size(pre.size * basis.n_basis, "connect: weights", "connect fewer pairs")
        weights = [f"w_{k}" for k in range(basis.n_basis)]
        channels = channel_names(kernel, basis)
        kwds.setdefault("name", "glmsynapses*")
        if kwds.get("dt") is None:
            kwds.setdefault("clock", neurons.clock)

        own_model, own_on_pre = self._check_own_code(source, neurons, weights, model, on_pre, kwds)
        # If one Synapses object cannot change all channels, the others get separate objects,
        # which the network includes together with this one.
        n_own = current_target().targets_a_pathway or basis.n_basis
        own = _pathway(weights[:n_own], channels[:n_own], own_model, own_on_pre)
        super().__init__(source, target, **own, **kwds)
        holders = [self] * n_own
        for k in range(n_own, basis.n_basis):
            more = {**kwds, "name": f"{self.name}_{k}", "on_post": None}
            holders.append(Synapses(source, target, **_pathway([weights[k]], [channels[k]]), **more))
        self._contained_objects.extend(holders[n_own:])
        add_attributes(
            self,
            basis=basis,
            kernel=kernel,
            _weights=list(zip(holders, weights)),
            _pre=np.zeros(0, dtype=np.int32),
            _post=np.zeros(0, dtype=np.int32),
            _is_learned=False,
            _own_on_pre=bool(own_on_pre),
            _uses_queue=False,
            _adding_rows=None,
        )
        explain_unknown_variables(
            self, {"w": f"the weights of these synapses are called {', '.join(weights)}"}
        )
        if own_model or own_on_pre:
            generate_in_double_precision(self)
        if current_target().has_arrays:
            replace_pathway_code(self.pre, self._row_code)
        share_code_of_runs(self)
        for holder in self._holders():
            time_steps_may_differ(holder)
            # Brian refuses to run active synapses that have not been connected.
            holder.active = False
        self._add_pairs(pre, post)

    @classmethod
    def _check_own_code(cls, source, neurons, weights, model, on_pre, kwds):
        """Check the user's own code, and return what Brian takes of `model` and `on_pre`."""
        own_model = check_equations(model, "model", {*weights, *_TAKEN, *dir(cls)})
        for name in ("method", "method_options"):
            if own_model is None and kwds.get(name) is not None:
                raise ValueError(
                    f"{name} is for differential equations in model: leave it out, or give a model"
                )
        # Without a suffix Brian takes a variable of the target, unless the synapse has one.
        kept = neurons.model_variables - {"bias"} - (own_model.names if own_model else set())
        kept |= {f"{name}_post" for name in kept} | _FIXED
        sender = whole_group(source)
        if isinstance(sender, GLMNeurons):
            kept |= {f"{name}_pre" for name in sender.model_variables - {"bias"}}
        own_on_pre = check_statements(on_pre, "on_pre", kept)
        on_post = kwds.get("on_post") or {}
        for statements in on_post.values() if isinstance(on_post, Mapping) else [on_post]:
            check_assignments(statements, "on_post", kept)
        return own_model, own_on_pre

    def _holders(self):
        return list(dict.fromkeys(holder for holder, _ in self._weights))

    def connect(
        self,
        condition: Any = None,
        i: ArrayLike | None = None,
        j: ArrayLike | None = None,
        p: float = 1.0,
        random_state: RandomState = None,
    ) -> None:
        """Add synapses, with weights of 0.

        Parameters
        ----------
        condition : bool, str or pair of arrays, optional
            As for `GLMSynapses`; by default all pairs.
        i, j : int or array_like of int, optional
            Instead of `condition`: indices of source and target, of the same length; a
            single index is paired with all of the other.
        p : float
            Probability of connecting each of the pairs.
        random_state : None, int, RandomState or Generator
            Makes the choice of pairs reproducible, and the same on every device.  ``None``
            takes a state from NumPy's global generator.

        Raises
        ------
        TypeError, ValueError
            If an argument is of the wrong type or out of range, a pair is already connected,
            or a `Trainer` learns the weights.
        NotImplementedError
            On a standalone device, if there are synapses and a run has been described.

        Examples
        --------
        >>> import glmbrian as glm
        >>> neurons = glm.GLMNeurons(100, {"coupling": glm.IndicatorBasis(5)})
        >>> lateral = glm.GLMSynapses(neurons, neurons, "coupling", connect=False)
        >>> lateral.connect("i != j", p=0.1, random_state=1)
        >>> lateral.connect(i=[0, 1], j=[0, 1])
        >>> bool(900 < len(lateral) < 1100)
        True
        """
        if self._is_learned:
            raise ValueError(
                f"{self.name} must be connected before you create a Trainer that learns its weights"
            )
        if (i is None) != (j is None):
            raise ValueError("i and j must be given together; for a rule, write a condition in i and j")
        if i is not None:
            if condition is not None:
                raise ValueError("connect takes either a condition or i and j, not both")
            if isinstance(i, str) or isinstance(j, str):
                raise TypeError("i and j must be integers; for a rule, write a condition in i and j")
            condition = np.atleast_1d(i), np.atleast_1d(j)  # type: ignore[arg-type]
            if 1 in (condition[0].size, condition[1].size):
                condition = np.broadcast_arrays(*condition)
        elif condition is None:
            condition = True
        self._add_pairs(*find_pairs(condition, len(self.source), len(self.target), p, random_state))

    def before_run(self, run_namespace: Any) -> None:
        for holder in self._holders():
            _check_delays(holder)
        super().before_run(run_namespace)

    def _row_code(self):
        """Return the group and the code that add whole rows of weights, or None to use Brian's queue."""
        # What has been in the queue once may still be there.
        self._uses_queue = (
            self._uses_queue
            or self._is_learned  # a Trainer reads the queue
            or self._own_on_pre
            or self.event_driven is not None
            or not _has_no_delays(self)
        )
        if self._uses_queue:
            return None
        neurons, name = whole_group(self.target), operation_name(self)
        channels = [neurons.variables[channel] for channel in channel_names(self.kernel, self.basis)]
        if self._adding_rows is None:
            rows = find_rows(self._pre, self._post + span(self.target).start, len(self.source))
            self._adding_rows = RowCode(self, self._variables(), channels, rows)
        neurons.row_code[name] = self._adding_rows
        neurons.namespace[name] = row_operation(name)
        changed_by_operations(channels)
        return neurons, f"{STEP_COUNT} = {name}({STEP_COUNT})"

    def _add_pairs(self, pre, post):
        all_pre, all_post = np.concatenate([self._pre, pre]), np.concatenate([self._post, post])
        if self._pre.size:
            check_distinct(all_pre, all_post)
        if not pre.size:
            return
        before = self._values()
        delay = self.pre.variables["delay"]
        has_no_delays = not delay.scalar and (not self._pre.size or _has_no_delays(self))
        for holder in self._holders():
            Synapses.connect(holder, i=pre, j=post)
            holder.active = True
        if has_no_delays:  # nor do new synapses have any
            remember_values(delay, np.zeros(all_pre.size))
        self._pre, self._post, self._adding_rows = all_pre, all_post, None
        self._remember(np.concatenate([before, np.zeros((pre.size, len(self._weights)))]))

    def learned_weights(self) -> tuple[list[Any], NDArray[np.int_]]:
        """Return what a `Trainer` needs to change the weights, and forbid adding synapses.

        Returns
        -------
        variables : list of brian2.core.variables.Variable
            One per basis function.
        targets : ndarray of int, shape (n_synapses,)
            Index of the target of each synapse.

        Examples
        --------
        >>> import glmbrian as glm
        >>> neurons = glm.GLMNeurons(3, {"coupling": glm.IndicatorBasis(2)})
        >>> lateral = glm.GLMSynapses(neurons, neurons, "coupling", ([0, 1], [1, 2]))
        >>> variables, targets = lateral.learned_weights()
        >>> [variable.name for variable in variables], targets.tolist()
        (['w_0', 'w_1'], [1, 2])
        """
        self._is_learned = True
        return self._variables(), self._post + span(self.target).start

    def learned_sources(self) -> NDArray[np.int_]:
        """Return the source of each synapse, as an index into the whole group; for a `Trainer`.

        Returns
        -------
        ndarray of int, shape (n_synapses,)

        Examples
        --------
        >>> import glmbrian as glm
        >>> neurons = glm.GLMNeurons(3, {"coupling": glm.IndicatorBasis(2)})
        >>> synapses = glm.GLMSynapses(neurons[1:], neurons, "coupling", ([0, 1], [1, 2]))
        >>> synapses.learned_sources().tolist()
        [1, 2]
        """
        return self._pre + span(self.source).start

    @property
    def w(self) -> WriteThrough:
        return WriteThrough(self._read(), "w", self._set_items)

    @w.setter
    def w(self, value: ArrayLike | str) -> None:
        written = self._of_each_synapse(value)
        if self._pre.size:
            for (holder, name), column in zip(self._weights, written.T):
                setattr(holder, name, column)
            self._remember(written)

    def _of_each_synapse(self, value):
        """Return what `w` may be set to as an array of shape (n_synapses, n_basis)."""
        shape = self._shape()
        if isinstance(value, str):
            value = evaluate_weights(value, self._pre, self._post, *shape[:2])
            return np.repeat(finite_array(value, "w")[:, np.newaxis], shape[2], axis=1)
        return broadcast_array(value, "w", shape)[self._pre, self._post]

    def _remember(self, values):
        for variable, column in zip(self._variables(), values.T):
            remember_values(variable, column)

    def _variables(self):
        return [holder.variables[name] for holder, name in self._weights]

    def _values(self):
        """Return the weights of each synapse, shape (n_synapses, n_basis)."""
        if not self._pre.size:
            return np.zeros((0, len(self._weights)))
        try:
            return np.stack([variable.get_value() for variable in self._variables()], axis=1)
        except NotImplementedError:
            raise NotImplementedError(
                f"on a standalone device, the weights of {self.name} are unknown from the first run until "
                "device.build() has run the program; until then you can set them as a whole, as in "
                "synapses.w = 1, but not read them"
            ) from None

    def _shape(self):
        return len(self.source), len(self.target), len(self._weights)

    def _read(self):
        """Return the weights as a new array."""
        check_size(np.prod(self._shape(), dtype=float), "w: values", "read w_0, w_1, ...")
        w = np.zeros(self._shape())
        w[self._pre, self._post] = self._values()
        return w

    def _set_items(self, item, value):
        chosen = np.zeros(self._shape(), dtype=bool)
        chosen[item] = True
        if chosen.any() and np.any(value) and not chosen[self._pre, self._post].any():
            raise ValueError(f"w: there is no synapse at the index {item!r}")
        w = self._read()
        w[item] = value
        self.w = w
        return self._read()

    def run_args(self, w: ArrayLike | str) -> dict[Any, np.ndarray]:
        """Return arguments for ``device.run(run_args=...)`` to run a program with other weights.

        Parameters
        ----------
        w : array_like of float, or str
            As for the attribute `w`.

        Returns
        -------
        dict

        Raises
        ------
        TypeError, ValueError
            As for the attribute `w`.
        NotImplementedError
            With Brian 2.5.

        Notes
        -----
        For C++ standalone programs that are already built, with Brian 2.6 or newer.

        Examples
        --------
        After ``device.build()``, call ``device.run(run_args=synapses.run_args(0.5))``.  A
        program has one variable per basis function:

        >>> import glmbrian as glm
        >>> neurons = glm.GLMNeurons(3, {"coupling": glm.IndicatorBasis(2)})
        >>> lateral = glm.GLMSynapses(neurons, neurons, "coupling", ([0, 1], [1, 2]))
        >>> {view.name: values.tolist() for view, values in lateral.run_args([0.5, 2.0]).items()
        ... }  # doctest: +SKIP
        {'w_0': [0.5, 0.5], 'w_1': [2.0, 2.0]}
        """
        return run_args(dict(zip(self._weights, self._of_each_synapse(w).T)))

    def _title(self):
        return f"{type(self).__name__} {self.name!r} with {self._pre.size} synapses"

    def _description(self):
        return {
            "source": f"{self.source.name!r} of {len(self.source)}",
            "target": f"{self.target.name!r} of {len(self.target)}",
            "kernel": f"{self.kernel!r} {self.basis!r}",
        }

    def kernels(self) -> NDArray[np.float64]:
        """Return the kernels alpha = A w.

        Returns
        -------
        ndarray of float, shape (n_source, n_target, window)
            Entry ``l - 1`` is what a spike adds to the target's potential `l` steps later;
            0 where there is no synapse.

        Examples
        --------
        >>> import glmbrian as glm
        >>> from brian2 import prefs
        >>> prefs.codegen.target = "numpy"
        >>> neurons = glm.GLMNeurons(2, {"coupling": glm.IndicatorBasis(3)})
        >>> lateral = glm.GLMSynapses(neurons, neurons, "coupling", "i != j")
        >>> lateral.w = [-2.0, -1.0, -0.5]
        >>> lateral.kernels()[0]
        array([[ 0. ,  0. ,  0. ],
               [-2. , -1. , -0.5]])
        """
        return self.basis.kernels(self.w)


def _pathway(weights, channels, own_model=None, own_on_pre=""):
    """Return arguments of `brian2.Synapses` that add each weight to its channel, and the user's own code."""
    model = "\n".join(f"{weight} : 1" for weight in weights)
    pairs = zip(channels, weights)
    return dict(
        model=Equations(model) + own_model if own_model else model,
        on_pre="\n".join(f"{channel}_post += {weight}" for channel, weight in pairs) + own_on_pre,
        # double, whatever precision the user prefers
        dtype={**dict.fromkeys(weights, np.float64), **double_precision_of(own_model)},
    )


def _delays(synapses):
    """Return the delays, or None where they are not known before a run."""
    try:
        return np.asarray(synapses.pre.variables["delay"].get_value())
    except NotImplementedError:  # on a standalone device, where code sets them when the program runs
        return None


def _has_no_delays(synapses):
    delays = _delays(synapses)
    return delays is not None and not delays.any()


def _check_delays(synapses):
    """Raise if a delay is negative, as far as delays are known before a run."""
    delays = _delays(synapses)
    if delays is not None and np.any(delays < 0):
        raise ValueError(
            f"delay of {synapses.name} must be at least 0, got {np.min(delays) * second!r}: a spike has "
            "an effect one step after it arrives, and never earlier"
        )


def _check_keywords(kwds):
    """Check the arguments for `brian2.Synapses` before creating anything."""
    known = inspect.signature(Synapses.__init__).parameters
    for key in kwds:
        if key in _OWN:
            raise TypeError(f"{key} cannot be given to GLMSynapses: {_OWN[key]}")
        if key not in known:
            raise TypeError(f"GLMSynapses takes no argument {key!r}; see its documentation")
    check_brian_arguments(
        kwds.get("dt"), kwds.get("clock"), kwds.get("order", 0), kwds.get("name", "glmsynapses*")
    )
    delay = kwds.get("delay")
    for value in delay.values() if isinstance(delay, Mapping) else [delay]:
        if value is None:
            continue
        if not isinstance(value, Quantity) or not have_same_dimensions(value, second) or value.ndim:
            raise TypeError(
                "delay must be a single time with a unit, such as 2*ms (for different delays, set "
                f"synapses.delay afterwards), got {value!r}"
            )
        if not 0 <= float(value) < np.inf:
            raise ValueError(f"delay must be at least 0 and finite, got {value!r}")
    _check_events(kwds)
    if not isinstance(kwds.get("namespace"), (Mapping, type(None))):
        raise TypeError(f"namespace must be a dict of names to values, got {kwds['namespace']!r}")
    on_post = "" if kwds.get("on_post") is None else kwds["on_post"]
    pathways = on_post.values() if isinstance(on_post, Mapping) else [on_post]
    if not all(isinstance(statements, str) for statements in pathways):
        raise TypeError(f"on_post must be statements such as 'w_0 += 0.1', got {kwds['on_post']!r}")


def _check_events(kwds):
    """Raise unless all pathways in `on_event` exist: Brian ignores others."""
    on_event, on_post = kwds.get("on_event", "spike"), kwds.get("on_post")
    pathways = ["pre", *(on_post if isinstance(on_post, Mapping) else ["post"] if on_post else [])]
    events = on_event if isinstance(on_event, Mapping) else dict.fromkeys(pathways, on_event)
    if not all(isinstance(event, str) for event in events.values()):
        raise TypeError(f"on_event must be the name of an event, or a dict of them, got {on_event!r}")
    for pathway in events:
        if pathway not in pathways:
            raise ValueError(
                f"on_event: there is no pathway {pathway!r}; the pathways of these synapses are "
                f"{', '.join(map(repr, pathways))}"
            )


def _event(kwds, pathway):
    """Return the event of the source at which a pathway acts."""
    on_event = kwds.get("on_event", "spike")
    return on_event.get(pathway, "spike") if isinstance(on_event, Mapping) else on_event
