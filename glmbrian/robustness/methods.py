"""How an attack searches for the worst changes, for a block of presentations at once."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.batches import BatchedLikelihood
from ..support.validation import choice


class Search:
    """What an attack lowers for a block of presentations, as a function of changed spikes.

    Parameters
    ----------
    goal : BatchedLikelihood
    labels : ndarray of int, shape (n,) or (n, 2)
    draws : list of lists of ndarray
        See `BatchedLikelihood.values`.
    trains : ndarray of uint8, shape (n, T, N_X)
        Before the attack.
    allowed : ndarray of bool, shape (n, T, N_X)
        Which entries may be changed.
    go_on : callable
        Called now and then; it raises an exception if the search is to end.
    """

    def __init__(self, goal: BatchedLikelihood, labels, draws, trains, allowed, go_on) -> None:
        self._go_on = go_on
        self.goal, self.labels, self.draws = goal, labels, draws
        self.trains = trains
        self.first = goal.network.first
        #: Direction of each change: 1 adds a spike, -1 removes one, 0 is not allowed.
        self.signs = np.where(allowed, 1 - 2 * trains.astype(np.int8), 0).astype(np.int8)
        self.drive = self.first.drive(trains)

    def of(self, rows: NDArray[np.int_], repeated: int = 1) -> tuple:
        """Return labels and draws of some presentations, each `repeated` times in a row."""
        rows = np.repeat(rows, repeated)
        return self.labels[rows], [[own[rows] for own in each] for each in self.draws]

    def predicted(self, rows: NDArray[np.int_], drive: NDArray[np.float64]) -> tuple:
        """Return values (n,), and by how much each change would raise them (n, T * N_X).

        To first order, for changes to the trains as they were before the attack; infinite where a
        change is not allowed.
        """
        self._go_on()
        values, gradients = self.goal.gradients(drive, *self.of(rows))
        signs = self.signs[rows]
        changes = np.where(signs, signs * gradients, np.inf)
        return values, changes.reshape(len(rows), -1)

    def effects(self, rows: NDArray[np.int_], places: NDArray[np.int_]) -> NDArray[np.float64]:
        """Return what changes at `places`, shape (n, m), add to potentials: (n, m, T, N)."""
        steps, inputs = np.divmod(places, self.trains.shape[2])
        signs = self.signs[rows[:, np.newaxis], steps, inputs]
        return signs[..., np.newaxis, np.newaxis] * self.first.effect(steps, inputs)

    def changed(self, is_changed: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Return the trains after changes at these entries, bool of shape (n, T * N_X)."""
        return self.trains ^ is_changed.reshape(self.trains.shape).astype(np.uint8)


class Method(ABC):
    """A search for the changes that lower a `Loss` most.

    Several blocks of presentations may be searched at once, in threads.

    Attributes
    ----------
    name : str

    Examples
    --------
    All changes at once, chosen by the gradient at the given trains:

    >>> import numpy as np
    >>> from glmbrian.robustness import Method
    >>> class AtOnce(Method):
    ...     name = "at once"
    ...     def search(self, search, budget, n_candidates):
    ...         rows = np.arange(len(search.trains))
    ...         _, changes = search.predicted(rows, search.drive)
    ...         ranks = changes.argsort(axis=1).argsort(axis=1)
    ...         return (ranks < budget) & (changes < 0)
    """

    name: ClassVar[str]

    @abstractmethod
    def search(self, search: Search, budget: int, n_candidates: int) -> NDArray[np.bool_]:
        """Return which entries to change.

        Parameters
        ----------
        search : glmbrian.robustness.methods.Search
        budget : int
            The most changes in each presentation.
        n_candidates : int
            How many changes to compare exactly, where the method does so.

        Returns
        -------
        ndarray of bool, shape (n, T * N_X)

        Examples
        --------
        >>> from glmbrian.robustness import METHODS
        >>> sorted(METHODS)
        ['greedy', 'iterated']
        """


class Greedy(Method):
    """One change at a time.

    The gradient proposes the `n_candidates` most promising changes.  The loss is computed with each
    of them, and the best one is made.
    """

    name = "greedy"

    def search(self, search, budget, n_candidates):
        n = len(search.trains)
        is_changed = np.zeros((n, search.trains[0].size), dtype=bool)
        drive, rows = search.drive.copy(), np.arange(n)
        for _ in range(budget):
            values, changes = search.predicted(rows, drive[rows])
            changes[is_changed[rows]] = np.inf
            places = lowest(changes, n_candidates)
            expected = np.take_along_axis(changes, places, axis=1)
            tried = drive[rows, np.newaxis] + search.effects(rows, places)
            reached = search.goal.values(
                tried.reshape(-1, *drive.shape[1:]), *search.of(rows, places.shape[1])
            ).reshape(places.shape)
            # A change may leave all hidden spikes as they were, and so the loss: the gradient decides.
            worth = (reached < values[:, np.newaxis]) | (
                (reached == values[:, np.newaxis]) & (expected < 0)
            )
            reached = np.where(worth & np.isfinite(expected), reached, np.inf)
            best = np.lexsort((expected, reached), axis=1)[:, 0]
            found = np.isfinite(reached[np.arange(len(rows)), best])
            rows, best = rows[found], best[found]
            if not len(rows):
                break
            drive[rows] = tried[np.flatnonzero(found), best]
            is_changed[rows, places[np.flatnonzero(found), best]] = True
        return is_changed


class Iterated(Method):
    """All changes at once, again and again.

    Each round chooses all changes anew, by the gradient at the trains of the previous round, and
    the best round counts.  For large budgets this is faster than "greedy", and lowers the loss a
    little less.

    Parameters
    ----------
    n_rounds : int
    """

    name = "iterated"

    def __init__(self, n_rounds: int = 10) -> None:
        self.n_rounds = n_rounds

    def search(self, search, budget, n_candidates):
        n = len(search.trains)
        rows = np.arange(n)
        now = best = np.zeros((n, search.trains[0].size), dtype=bool)
        drive, least = search.drive, np.full(n, np.inf)
        for number in range(self.n_rounds + 1):
            values, changes = search.predicted(rows, drive)
            better = values < least
            least = np.where(better, values, least)
            best = np.where(better[:, np.newaxis], now, best)
            if number == self.n_rounds:
                break
            places = lowest(changes, budget)
            worth = np.take_along_axis(changes, places, axis=1) < 0
            now = np.zeros_like(best)
            np.put_along_axis(now, places, worth, axis=1)
            effects = search.effects(rows, places) * worth[..., np.newaxis, np.newaxis]
            drive = search.drive + effects.sum(axis=1)
        return best


def found_by(method: Method, search: Search, budget: int, n_candidates: int) -> NDArray[np.bool_]:
    """Return which entries a method changes, after a check."""
    found = method.search(search, budget, n_candidates)
    shape = len(search.trains), search.trains[0].size
    if not (isinstance(found, np.ndarray) and found.dtype == bool and found.shape == shape):
        raise TypeError(
            f"method {method.name!r}: search must return an array of bool of the shape {shape}, one entry "
            f"for each step and input, got {_described(found)}"
        )
    if (most := int(found.sum(axis=1).max(initial=0))) > budget:
        raise ValueError(
            f"method {method.name!r}: search must change at most {budget} entries of a presentation, "
            f"got {most}"
        )
    return found


def _described(found):
    if isinstance(found, np.ndarray):
        return f"an array of {found.dtype} of the shape {found.shape}"
    return f"a {type(found).__name__}"


def lowest(values: NDArray[np.floating], n: int) -> NDArray[np.int_]:
    """Return the places of the `n` lowest entries in each row, or of all."""
    if n >= values.shape[1]:
        return np.broadcast_to(np.arange(values.shape[1]), values.shape)
    return np.argpartition(values, n - 1, axis=1)[:, :n]


#: Every method of an attack, by name.
METHODS: dict[str, Method] = {method.name: method for method in (Greedy(), Iterated())}


def get_method(method: str | Method) -> Method:
    """Return the `Method` with this name, or `method` itself if it already is one."""
    return method if isinstance(method, Method) else METHODS[choice(method, "method", METHODS)]
