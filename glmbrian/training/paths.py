"""Checks whether input reaches the hidden neurons of a network."""

import numpy as np

from ..brian.subgroups import span, whole_group


def check_input_arrives(groups, learned, others):
    """Raise a ValueError unless each hidden neuron has a drive, or synapses lead to it from a source.

    Parameters
    ----------
    groups : list of GLMNeurons
        The outputs, then the hidden groups.
    learned : list
        The sets of weights that learn.
    others : list of Synapses
        All other synapses.  A standalone device may not know their pairs yet, so each counts as
        reaching its whole target.
    """
    numbers = {group.id: number for number, group in enumerate(groups)}
    reached = [np.full(len(group), "drive" in group.variables) for group in groups]
    for synapses in others:
        number = numbers.get(whole_group(synapses.target).id)
        if number is not None:
            reached[number][span(synapses.target)] = True
    paths = [each for each in learned if each.pathway is not None]
    before = -1
    while before < (now := sum(np.count_nonzero(each) for each in reached)):
        before = now
        for path in paths:
            sender = numbers.get(whole_group(path.pathway.source).id)
            sends = slice(None) if sender is None else reached[sender][path.sources]
            reached[path.group][path.targets[sends]] = True
    for group, each in list(zip(groups, reached))[1:]:
        missing = np.flatnonzero(~each)
        if missing.size:
            raise ValueError(
                f"synapses: no input reaches {missing.size} of the {len(group)} hidden neurons "
                f"{group.name} (the first is neuron {missing[0]}), so there is nothing that they could "
                "learn; connect them to a source, give them a drive, or leave them out"
            )
