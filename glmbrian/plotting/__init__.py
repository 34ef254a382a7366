"""Pictures of what was learned, of presentations, and of decisions.

Each function draws into `ax`, or into a new pyplot figure, and returns the Axes.
Line styles, markers and lightness tell things apart, so the pictures work in grey.

`kernels` and `weights` draw kernels, as lines and as images, from any source that
`kernel_sets` accepts; `rasters` and `potentials` draw what was recorded, by Brian's
`monitors` or in traces; `decisions` when and how decisions were made; `trust` how far
they can be trusted; `learning` the course of training; `goodness` whether a fit is good, and
`coupling` who is connected with whom.  `report` combines several in one figure; all share `style`.
"""

from ..support.first_import import import_brian

import_brian()

from .coupling import plot_connectivity
from .decisions import plot_accuracy_by_deadline, plot_decision_times
from .goodness import ks_plot
from .kernels import plot_basis, plot_feedback_kernels, plot_kernels
from .learning import plot_learning_curve
from .potentials import plot_membrane_potential
from .rasters import plot_raster
from .report import training_report
from .trust import plot_accuracy_by_budget, plot_coverage, plot_reliability
from .weights import plot_weight_map

__all__ = [
    "ks_plot",
    "plot_accuracy_by_budget",
    "plot_accuracy_by_deadline",
    "plot_basis",
    "plot_connectivity",
    "plot_coverage",
    "plot_decision_times",
    "plot_feedback_kernels",
    "plot_kernels",
    "plot_learning_curve",
    "plot_membrane_potential",
    "plot_raster",
    "plot_reliability",
    "plot_weight_map",
    "training_report",
]
