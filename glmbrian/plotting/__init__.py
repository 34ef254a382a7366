"""Pictures of what was learned, of presentations, and of decisions.

Each function draws into `ax`, or into a new pyplot figure, and returns the Axes.
Line styles, markers and lightness tell things apart, so that they print in grey.

`kernels` and `weights` draw kernels, as lines and as images, of all that
`kernel_sets` can take them from; `rasters` and `potentials` what was recorded, by
Brian's `monitors` or in traces; `decisions` when and how it was decided; `learning`
the way there.  `report` puts several into one figure, and `style` is what all share.
"""

from ..support.first_import import import_brian

import_brian()

from .decisions import plot_accuracy_by_deadline, plot_decision_times
from .kernels import plot_basis, plot_feedback_kernels, plot_kernels
from .learning import plot_learning_curve
from .potentials import plot_membrane_potential
from .rasters import plot_raster
from .report import training_report
from .weights import plot_weight_map

__all__ = [
    "plot_accuracy_by_deadline",
    "plot_basis",
    "plot_decision_times",
    "plot_feedback_kernels",
    "plot_kernels",
    "plot_learning_curve",
    "plot_membrane_potential",
    "plot_raster",
    "plot_weight_map",
    "training_report",
]
