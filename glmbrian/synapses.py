"""Synapses of GLM neurons: each carries the weights of a temporal kernel."""

import numpy as np
from brian2 import Synapses
from brian2.groups.subgroup import Subgroup

from .brian_internals import on_genn, require_spikes, time_steps_may_differ
from .neurons import GLMNeurons, channel_names
from .validation import choice, finite_array


class GLMSynapses(Synapses):
    """Synapses whose weights w stand for kernels alpha = A w.

    A spike of the source adds w to the channels of the target, which filters them by
    the basis A of the kernel: eq. Ex_GLM_1.  Stimulus and lateral coupling kernels alike.
    Where source and target have different time steps, a spike counts for the target's step in
    which it arrives, and delays are in steps of the source.

    Parameters
    ----------
    source : brian2 spike source
        Any group that spikes: `RateEncoder`, PoissonGroup, SpikeGeneratorGroup,
        NeuronGroup, another `GLMNeurons`, or a Subgroup of one.
    target : GLMNeurons or Subgroup of one
    kernel : str
        Name of one of the target's kernels.
    connect : bool, str or pair of arrays
        ``True`` connects all pairs, ``False`` none yet.  A condition in ``i``,
        ``j``, ``N_pre``, ``N_post`` such as ``"i != j"``, or the index arrays
        ``(i, j)``, connects some.
    **kwds
        Handed to `brian2.Synapses`, e.g. ``delay`` (added to the lag of one step
        that every kernel has) or ``name``.

    Attributes
    ----------
    w : ndarray of float, shape (n_source, n_target, n_basis)
        Weights of the kernels; 0 where there is no synapse.  Reads and writes as a
        whole: ``synapses.w[0, 0] = 1`` would change a copy.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> import glmbrian as glm
    >>> neurons = glm.GLMNeurons(3, {"coupling": glm.IndicatorBasis(5)})
    >>> lateral = glm.GLMSynapses(neurons, neurons, "coupling", "i != j")
    >>> lateral.w = 0.5
    >>> lateral.kernels().shape
    (3, 3, 5)
    """

    def __init__(self, source, target, kernel="stimulus", connect=True, **kwds):
        neurons = target.source if isinstance(target, Subgroup) else target
        if not isinstance(neurons, GLMNeurons):
            raise TypeError(f"target must be GLMNeurons or a subgroup of them, got {target!r}")
        require_spikes(source, "source")
        choice(kernel, "kernel", tuple(neurons.kernels))
        basis = neurons.kernels[kernel]
        pre, post = _pairs(connect, len(source), len(target))
        weights = [f"w_{k}" for k in range(basis.n_basis)]
        channels = channel_names(kernel, basis)
        kwds.setdefault("name", "glmsynapses*")
        if "dt" not in kwds:
            kwds.setdefault("clock", neurons.clock)

        def model(weights, channels):
            equations = "\n".join(f"{weight} : 1" for weight in weights)
            pairs = zip(channels, weights)
            return equations, "\n".join(f"{channel}_post += {weight}" for channel, weight in pairs)

        # GeNN takes one target variable a Synapses object: the others go into
        # objects of their own, which the network takes along with this one.
        n_own = 1 if on_genn() else basis.n_basis
        equations, on_pre = model(weights[:n_own], channels[:n_own])
        super().__init__(source, target, equations, on_pre=on_pre, **kwds)
        holders = [self] * n_own
        for k in range(n_own, basis.n_basis):
            equations, on_pre = model([weights[k]], [channels[k]])
            more = {**kwds, "name": f"{self.name}_{k}"}
            holders.append(Synapses(source, target, equations, on_pre=on_pre, **more))
        self._contained_objects.extend(holders[n_own:])
        for key, value in dict(
            basis=basis,
            kernel=kernel,
            _weights=list(zip(holders, weights)),
            _pre=pre,
            _post=post,
            _written=np.zeros((pre.size, basis.n_basis)),
        ).items():
            self.add_attribute(key)
            setattr(self, key, value)
        for holder in dict.fromkeys(holders):
            time_steps_may_differ(holder)
            if pre.size:
                Synapses.connect(holder, i=pre, j=post)
            else:
                # Brian refuses to run synapses that nobody has connected.
                holder.active = False

    def connect(self, *args, **kwds):
        raise NotImplementedError(
            "GLMSynapses are connected when they are created: pass connect=True, a "
            "condition in i and j, or the index arrays (i, j) to GLMSynapses(...)"
        )

    @property
    def w(self):
        w = np.zeros((len(self.source), len(self.target), len(self._weights)))
        try:
            for k, (holder, name) in enumerate(self._weights):
                w[self._pre, self._post, k] = getattr(holder, f"{name}_")[:]
        except NotImplementedError:
            # A standalone device knows no values before the run; they are those
            # that were written.
            w[self._pre, self._post] = self._written
        return w

    @w.setter
    def w(self, value):
        shape = (len(self.source), len(self.target), len(self._weights))
        value = finite_array(value, "w")
        try:
            value = np.broadcast_to(value, shape)
        except ValueError:
            raise ValueError(
                f"w must have the shape {shape} or broadcast to it, got {np.shape(value)}"
            ) from None
        self._written = value[self._pre, self._post]
        if self._pre.size:
            for (holder, name), column in zip(self._weights, self._written.T):
                setattr(holder, name, column)

    def kernels(self):
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


def _pairs(connect, n_source, n_target):
    """Return the index arrays of the connected pairs, so that every device knows
    the order of its synapses and weights can be set before a run."""
    i, j = (grid.ravel() for grid in np.mgrid[:n_source, :n_target])
    if isinstance(connect, (bool, np.bool_)):
        chosen = np.full(i.size, bool(connect))
    elif isinstance(connect, str):
        chosen = _condition(connect, i, j, n_source, n_target)
    else:
        try:
            pre, post = (
                np.asarray(index, dtype=None if np.size(index) else np.int32).astype(
                    np.int32, casting="same_kind"
                )
                for index in connect
            )
        except (TypeError, ValueError):
            raise TypeError(
                "connect must be True, False, a condition in i and j, or a pair of "
                f"integer arrays (i, j), got {connect!r}"
            ) from None
        if pre.ndim != 1 or pre.shape != post.shape:
            raise ValueError(f"connect: i and j must be of one length, got {pre.shape} and {post.shape}")
        for index, size, name in ((pre, n_source, "i"), (post, n_target, "j")):
            if index.size and (index.min() < 0 or index.max() >= size):
                raise ValueError(f"connect: {name} must be from 0 to {size - 1}")
        if np.unique(np.stack([pre, post]), axis=1).shape[1] != pre.size:
            raise ValueError("connect: a pair (i, j) is given twice")
        return pre, post
    return i[chosen].astype(np.int32), j[chosen].astype(np.int32)


#: What a condition may use besides i, j, N_pre and N_post.
_CONDITION_FUNCTIONS = {"abs": abs, "int": int, "min": min, "max": max, "round": round}


def _condition(condition, i, j, n_source, n_target):
    """Evaluate a condition for each pair, so that Python's `and` and `or` mean what
    they say."""
    names = {**_CONDITION_FUNCTIONS, "N_pre": n_source, "N_post": n_target}
    try:
        code = compile(condition.strip(), "connect", "eval")
        return np.array(
            [
                bool(eval(code, {"__builtins__": {}}, {**names, "i": pre, "j": post}))
                for pre, post in zip(i.tolist(), j.tolist())
            ],
            dtype=bool,
        )
    except Exception as error:
        raise ValueError(
            "connect must be a condition in i, j, N_pre and N_post, such as 'i != j'; "
            f"{condition!r} failed: {error}"
        ) from None
