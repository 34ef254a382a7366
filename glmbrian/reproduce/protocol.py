"""What to run: the paper's protocol (Sec. IV), and a quick form of it."""

from dataclasses import dataclass, replace
from typing import Any

from ..classifier.classifier import PAPER_SETTINGS
from ..core.objectives import FirstToSpike, Rate

#: The objectives that the paper compares, in the order of its figures.
DECODINGS = (FirstToSpike.name, Rate.name)

#: The paper's figures, by the names of their commands.
TARGETS = ("basis", "accuracy-vs-k", "accuracy-vs-complexity")

_PAPER: dict[str, Any] = PAPER_SETTINGS

#: Parameters of `GLMClassifier`: the paper's, whose learning rate is selected; the package's in
#: version 0.1; and the package's today.  Results refer to them by name, so the meaning of a name never
#: changes.
SETTINGS: dict[str, dict[str, Any]] = {
    "paper": {name: _PAPER[name] for name in ("batch_size", "weight_scale", "bias_init", "average")},
    "package": {"learning_rate": 0.01, "average": 0.0, "bias_init": -5.0},
    "package-averaged": {"learning_rate": 0.015, "average": 0.3, "bias_init": -5.0},
}

#: The settings of a new folder of results, and of one that version 0.1 began.
TRAINED_WITH = ("paper", "package-averaged")
TRAINED_WITH_BY_0_1 = ("paper", "package")


@dataclass(frozen=True)
class Design:
    """One point of a figure: a decoder, and the sizes of its network."""

    decoding: str
    classes: tuple
    n_steps: int
    n_basis: int


@dataclass(frozen=True)
class Protocol:
    """The grids of the figures, and how each of their points is trained.

    Parameters
    ----------
    name : str
        "full" or "quick".
    class_sets : tuple of tuple of int
        For accuracy against K; accuracy against operations has the first set only.
    n_steps : int
        T for accuracy against K.
    k_grid : tuple of int
        Values of K for accuracy against K.
    t_grid : tuple of int
        Values of T = K for accuracy against operations.
    n_train, n_test : int
        Images per class.
    n_epochs : int
    n_seeds : int
        Fits per point, with ``random_state`` 0, 1, ...
    learning_rates : tuple of float
        One of them is selected for each point, for the paper's settings.
    n_folds, selection_epochs : int
        Folds and epochs of the cross-validation that selects it.
    """

    name: str
    class_sets: tuple
    n_steps: int
    k_grid: tuple
    t_grid: tuple
    n_train: int
    n_test: int
    n_epochs: int
    n_seeds: int
    learning_rates: tuple
    n_folds: int
    selection_epochs: int

    def designs(self, target: str) -> list[Design]:
        """Return the `Design` of each point of a figure, one of `TARGETS`."""
        if target == "accuracy-vs-k":
            sizes = [
                (classes, self.n_steps, n_basis)
                for classes in self.class_sets
                for n_basis in self.k_grid
            ]
        elif target == "accuracy-vs-complexity":
            sizes = [(self.class_sets[0], n_steps, n_steps) for n_steps in self.t_grid]
        else:
            sizes = []
        return [Design(decoding, *size) for size in sizes for decoding in DECODINGS]


#: Cross-validation takes 40 epochs instead of 200.  That does not favour the larger
#: rate: 200 epochs at 1e-4 only get as far as 20 at 1e-3.
FULL = Protocol(
    name="full",
    class_sets=((5, 7), (5, 7, 1, 9), tuple(range(10))),
    n_steps=4,
    k_grid=(1, 2, 3, 4),
    t_grid=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32),
    n_train=1000,
    n_test=1000,
    n_epochs=_PAPER["n_epochs"],
    n_seeds=5,
    learning_rates=(1e-3, 1e-4),
    n_folds=10,
    selection_epochs=40,
)

QUICK = replace(
    FULL,
    name="quick",
    k_grid=(1, 2, 4),
    t_grid=(2, 4, 8, 16),
    n_train=500,
    n_test=500,
    n_epochs=50,
    n_seeds=3,
    n_folds=3,
    selection_epochs=15,
)
