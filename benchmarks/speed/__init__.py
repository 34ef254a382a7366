"""How fast the package is, compared with the alternatives: ``make benchmark``.

==================  =============================================================
`workload`          what to train
`package`, `peers`  what trains it: the package, and other implementations
`interleaved`       timing of contenders that take turns
`comparisons`       each comparison
`scaling`           growth along each axis
`report`            tables and pictures
==================  =============================================================
"""

import datetime

from . import comparisons, report
from .scaling import growth
from .workload import whole_mnist

__all__ = ["benchmark"]


def benchmark(quick=False, n_rounds=None, data_dir=None, progress=lambda text: None):
    """Make all comparisons and return the measurements.

    Parameters
    ----------
    quick : bool
        Shorter turns, and fewer rounds, sizes and points; takes minutes.
    n_rounds : int, optional
        Turns per contender, by default 5, or 3 in a quick run.
    data_dir : path, optional
        IDX files of the whole of MNIST for the comparison of many images.
    progress : callable
        Called with a line of text about each stage.

    Returns
    -------
    dict
        ``machine``, ``date``, ``quick``, ``n_rounds``, ``unavailable`` and the results of
        each function in `comparisons` and `scaling`; all JSON-compatible.
    """
    # Load before measuring, since the files may be missing.
    whole = None if data_dir is None else whole_mnist(data_dir, 8)
    if n_rounds is None:
        n_rounds = 3 if quick else 5
    seconds = 0.1 if quick else 0.6
    sizes = comparisons.SIZES[1:3] if quick else comparisons.SIZES
    results = {
        "machine": report.machine(),
        "date": datetime.date.today().isoformat(),
        "quick": quick,
        "n_rounds": n_rounds,
        "unavailable": comparisons.unavailable(),
    }
    results["training"] = comparisons.training(sizes, n_rounds, seconds, progress)
    progress("early stopping")
    results["early_stopping"] = comparisons.early_stopping(16, n_rounds, n_epochs=2 if quick else 20)
    progress("second fit")
    results["second_fit"] = comparisons.second_fit(n_rounds)
    progress("many images")
    results["many_images"] = comparisons.many_images(n_rounds, 10_000 if quick else 60_000, whole)
    progress("imports")
    results["imports"] = comparisons.imports(n_rounds)
    results["scaling"] = growth(quick, n_rounds, seconds / 2, progress)
    return results
