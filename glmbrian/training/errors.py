"""Errors of the neurons in any network: derivatives with respect to their potentials."""

import numpy as np


def errors_of(groups, states, weights, output_error, credit, reward):
    """Return the derivatives with respect to the potentials of each group, shape (n_steps, n).

    A spike changes potentials in later steps only, so one sweep from the last step to the first
    serves any network, also a recurrent one.

    Parameters
    ----------
    groups : list of GLMNeurons
        The outputs, then the hidden groups.
    states : list
        For each group its ``potentials`` and ``spikes``, shape (n_steps, n).
    weights : list of LearnedWeights
        The sets of weights through which errors flow.
    output_error : ndarray of float, shape (n_steps, n_outputs), or None
        None if the outputs, too, learn by `credit`.
    credit : Credit
    reward : float

    Returns
    -------
    list of ndarray of float
    """
    n_steps = len(states[0].potentials)
    errors = [np.zeros(state.potentials.shape) for state in states]
    if output_error is not None:
        errors[0] = output_error
    first = 0 if output_error is None else 1
    paths = [each for each in weights if each.sender is not None]
    values_of = [np.stack([variable.get_value() for variable in path.variables]) for path in paths]
    delays = [path.delays() for path in paths]
    # The gradient in what arrives at a group in each step; nothing counts after the last.
    arriving = {
        (path.group, path.basis): np.zeros((path.basis.n_basis, n_steps + 1, len(groups[path.group])))
        for path in paths
    }
    for step in reversed(range(n_steps)):
        for (group, basis), gradient in arriving.items():
            later = errors[group][step + 1 : step + 1 + basis.window]
            gradient[:, step] = basis.matrix[: len(later)].T @ later
        in_spikes = [np.zeros(len(group)) for group in groups]
        for path, values, delay in zip(paths, values_of, delays):
            gradient = arriving[path.group, path.basis]
            when = np.minimum(step + delay, n_steps)
            effect = np.sum(values * gradient[:, when, path.targets], axis=0)
            into = in_spikes[path.sender]
            into += np.bincount(path.sources, weights=effect, minlength=into.size)
        for number, group in enumerate(groups[first:], start=first):
            state = states[number]
            errors[number][step] = credit.slope(
                group.activation, state.potentials[step], state.spikes[step], in_spikes[number], reward
            )
    return errors
