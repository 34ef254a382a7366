"""Timing of contenders that take turns, so a busy machine slows all of them alike."""

import statistics

from .package import micros


def take_turns(contenders, n_rounds, seconds, progress=lambda text: None, about=""):
    """Return the microseconds per presentation of each contender, in lists of `n_rounds`.

    Parameters
    ----------
    contenders : dict of str to Peer
    n_rounds : int
    seconds : float
        How long one turn should take; sets the number of presentations.
    progress : callable
        Called before each turn with a line of text that begins with `about`.
    """
    n_presentations = {
        name: _presentations_in(seconds, contender) for name, contender in contenders.items()
    }
    times = {name: [] for name in contenders}
    for n in range(n_rounds):
        for name, contender in contenders.items():
            progress(f"{about}round {n + 1} of {n_rounds}: {name}")
            times[name].append(micros(contender, n_presentations[name], seed=n))
    return times


def _presentations_in(seconds, contender):
    n = 20
    # A short run says little about a fast contender.
    while True:
        needed = contender.train(n, seed=0)
        if needed > seconds / 5 or n > 10**7:
            return max(20, round(getattr(contender, "n_presentations", n) * seconds / needed))
        n *= 5


def spread(values):
    """Return the median, the least and the greatest of some values."""
    return {"median": statistics.median(values), "least": min(values), "greatest": max(values)}


def ratios(times, others):
    """Return the `spread` of ``times / others``, round by round."""
    return spread([time / other for time, other in zip(times, others)])
