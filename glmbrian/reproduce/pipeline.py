"""From a protocol to its tables and figures."""

import json
import platform
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .._version import __version__
from ..classifier.classifier import GLMClassifier
from ..support.progress import Progress
from ..support.storage import remove_unfinished, write_text
from . import claims, figures, tables
from .fits import AnnFit, Build, Fit
from .protocol import SETTINGS, TRAINED_WITH, TRAINED_WITH_BY_0_1, Protocol
from .selection import mean_accuracies, selected, selection_fits
from .sweep import Results, sweep

#: The file in the folder of results that describes their protocol.
_SETTINGS_FILE = "settings.json"

#: Packages that may affect the results.
_PACKAGES = ("brian2", "numpy", "scipy", "scikit-learn")


def reproduce(
    targets: list[str],
    protocol: Protocol,
    output: str | Path,
    workers: AbstractContextManager[Callable],
    device: str = "cpp_standalone",
    verbose: bool = True,
    say: Callable[[str], Any] = print,
) -> dict[str, Any]:
    """Run the missing fits of a protocol, and write its tables and figures.

    Parameters
    ----------
    targets : list of str
        Some of `protocol.TARGETS`.
    protocol : Protocol
    output : str or Path
        A new or empty folder, or one with results of the same protocol, which are
        reused.
    workers : context manager
        See `sweep.local_workers` and `sweep.dask_workers`.
    device : str
        `device` of the `GLMClassifier`.
    verbose : bool
        Show a progress bar.
    say : callable
        Called with one line of text that describes the work to do.

    Returns
    -------
    dict
        What was done, how many of the paper's claims hold, and the output folder.

    Raises
    ------
    ValueError
        If `output` holds something else.
    OSError
        If it cannot be read or written.
    """
    started = time.perf_counter()
    output = Path(output)
    earlier = _earlier_description(output)
    trained_with = TRAINED_WITH
    if earlier is not None and set(earlier["settings"]) == set(TRAINED_WITH_BY_0_1):
        trained_with = TRAINED_WITH_BY_0_1
    about = _description(protocol, device, trained_with)
    about["runs"] = _earlier_runs(output, earlier, about)
    study = _Study(targets, protocol, trained_with, device, Results(output / "fits"))
    with workers as run:
        output.mkdir(parents=True, exist_ok=True)
        _write_json(output / _SETTINGS_FILE, about)
        if study.n_fits:
            say(study.plan())
        with Progress("fits", study.n_presentations, verbose and study.n_fits > 0) as progress:
            study.run(run, progress)
    checked = study.write(output)
    done = {"targets": targets, **study.done(), "seconds": time.perf_counter() - started}
    about["runs"].append({**done, "glmbrian": __version__})
    _write_json(output / _SETTINGS_FILE, about)
    if not study.n_fits:
        done = {"targets": targets}  # everything else would be 0
    if checked:
        done["claims_that_hold"] = f"{sum(claim['holds'] for claim in checked)} of {len(checked)}"
    return {**done, "output": str(output)}


class _Study:
    """The fits of some figures.

    They run in two stages: with the paper's settings, the learning rate of a fit is
    known only after cross-validation.
    """

    def __init__(self, targets, protocol, trained_with, device, results):
        self.protocol, self.device, self.results = protocol, device, results
        self.trained_with = trained_with
        self.designs = {target: protocol.designs(target) for target in targets}
        every = dict.fromkeys(design for designs in self.designs.values() for design in designs)
        self.searches = {design: selection_fits(protocol, design, device) for design in every}
        own = [name for name in trained_with if name != "paper"]
        package_fits = [fit for name in own for design in every for fit in self.fits(name, design)]
        self.first_stage = package_fits + [
            fit for search in self.searches.values() for folds in search.values() for fit in folds
        ]
        # The second stage has the same number of fits with the paper's settings.
        self.n_fits = len(self.first_stage) + len(package_fits)
        self.n_presentations = sum(fit.n_presentations for fit in self.first_stage + package_fits)
        self.ann = AnnFit(protocol.class_sets[0], protocol.n_train, protocol.n_test, protocol.n_folds)
        if self.designs.get("accuracy-vs-complexity"):
            self.first_stage.append(self.ann)
        self.builds = {}
        self.finished = {}
        self.n_passed = 0

    def plan(self):
        """Describe the work to do in one line."""
        return (
            f"{self.protocol.name}: {self.n_fits:,} fits of {len(self.searches)} architectures, "
            f"{self.n_presentations / 1e6:,.1f} million presentations"
        )

    def fits(self, settings, design):
        """Return the fits of a design, one per seed.

        With the paper's settings, the cross-validation must be finished.
        """
        rate = SETTINGS[settings].get("learning_rate")
        if rate is None:
            rate = selected(mean_accuracies(self.searches[design], self.results))
        sizes = {name: getattr(self.protocol, name) for name in ("n_epochs", "n_train", "n_test")}
        return [
            Fit(settings, design, rate, seed=seed, device=self.device, **sizes)
            for seed in range(self.protocol.n_seeds)
        ]

    # ------------------------------------------------------------------ running

    def run(self, workers, progress):
        """Run all fits whose results are missing."""
        self._run_stage(self.first_stage, workers, progress)
        paper_fits = [fit for design in self.searches for fit in self.fits("paper", design)]
        self._run_stage(paper_fits, workers, progress)

    def _run_stage(self, fits, workers, progress):
        missing = [fit for fit in fits if fit not in self.results]
        self._build(missing, workers, progress)
        self.n_passed += sum(fit.n_presentations for fit in set(fits) - set(missing))
        progress(self.n_passed)

        def finished(fit, result):
            self.finished[fit] = result.get("timing")
            self.n_passed += fit.n_presentations
            progress(self.n_passed)

        sweep(missing, self.results, workers, finished)

    def _build(self, fits, workers, progress):
        """Compile the programs of `fits` first, since parallel fits would each compile theirs."""
        builds = [Build(fit.design, self.device) for fit in fits if isinstance(fit, Fit)]
        if all(build in self.builds for build in builds):
            return
        progress.compiling()
        sweep(builds, self.builds, workers)
        progress(0)

    def done(self):
        """Return what this run has done."""
        builds = [built["timing"]["build_seconds"] for built in self.builds.values()]
        timings = [timing for timing in self.finished.values() if timing]  # the ANN has none
        return {
            "architectures": len(self.searches),
            "fits": len(self.finished),
            "presentations": sum(fit.n_presentations for fit in self.finished),
            "seconds_building": sum(builds, 0.0),
            "seconds_training": sum((timing["run_seconds"] for timing in timings), 0.0),
            # Far below the time of a build if each program was built only once.
            "most_seconds_to_find_a_program": max(
                (timing["build_seconds"] for timing in timings), default=0.0
            ),
        }

    # ------------------------------------------------------------------ writing

    def write(self, output):
        """Write the tables and figures, and return the claims."""
        quick = self.protocol.name == "quick"
        checked = []
        for target, designs in self.designs.items():
            stem = target.replace("-", "_")
            if target == "basis":
                figures.save(figures.basis(), output / stem, quick)
                continue
            pairs = [
                (fit, self.results[fit])
                for settings in self.trained_with
                for design in designs
                for fit in self.fits(settings, design)
            ]
            rows = [tables.fit_row(fit, result) for fit, result in pairs]
            if target == "accuracy-vs-k":
                found = self._write_accuracy_vs_k(output, stem, rows, quick)
            else:
                found = self._write_accuracy_vs_complexity(output, stem, rows, pairs, quick)
            tables.write_csv(output / f"{stem}_learning_rates.csv", self._rate_rows(designs))
            _write_json(output / f"{stem}_claims.json", found)
            checked += found
        return checked

    def _write_accuracy_vs_k(self, output, stem, rows, quick):
        tables.write_csv(output / f"{stem}.csv", rows)
        with_gaps = rows + tables.gap_rows(rows)
        tables.write_csv(output / f"{stem}_summary.csv", tables.summary(with_gaps))
        figures.save(figures.accuracy_vs_k(rows), output / stem, quick)
        return claims.accuracy_vs_k_claims(rows)

    def _write_accuracy_vs_complexity(self, output, stem, rows, pairs, quick):
        ann = self.results[self.ann]
        with_ann = rows + [tables.ann_row(self.ann, ann)]
        tables.write_csv(output / f"{stem}.csv", with_ann)
        tables.write_csv(output / f"{stem}_summary.csv", tables.summary(rows))
        figures.save(figures.accuracy_vs_complexity(with_ann), output / stem, quick)
        details: list[tuple[str, Callable, list]] = [
            ("decision_times", tables.decision_time_rows, pairs),
            ("deadlines", tables.deadline_rows, pairs),
            ("operations", tables.operation_rows, [*pairs, (self.ann, ann)]),
        ]
        for name, rows_of, measured in details:
            table = [row for fit, result in measured for row in rows_of(fit, result)]
            tables.write_csv(output / f"{name}.csv", table)
            figures.save(getattr(figures, name)(table), output / name, quick)
        return claims.accuracy_vs_complexity_claims(rows)

    def _rate_rows(self, designs):
        return [
            row
            for design in designs
            for row in tables.rate_rows(design, mean_accuracies(self.searches[design], self.results))
        ]


# ------------------------------------------------------------------ the folder


def _description(protocol, device, trained_with):
    """Return everything the results depend on.

    The protocol overrides the sizes, the number of epochs and the seed of the settings; a learning
    rate that is selected is left out.
    """
    about = {
        "protocol": asdict(protocol),
        "settings": {
            name: _fixed(name, GLMClassifier(**SETTINGS[name]).get_params()) for name in trained_with
        },
        "device": device,
        "versions": {
            "glmbrian": __version__,
            "python": platform.python_version(),
            **{package: version(package) for package in _PACKAGES},
        },
    }
    return json.loads(json.dumps(about))


def _earlier_description(output):
    """Return how a folder with results describes them, or None if it is new or empty."""
    remove_unfinished(output)  # a killed run may have left nothing else
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return None
    try:
        earlier = json.loads((output / _SETTINGS_FILE).read_text())
        return _as_described_today({**earlier, "runs": list(earlier["runs"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"output: {output} is not empty, and has no {_SETTINGS_FILE} of an earlier run; "
            "choose a new or empty folder"
        ) from None


def _earlier_runs(output, earlier, about):
    """Return the runs whose results are in a folder, which must match `about`."""
    if earlier is None:
        return []
    names = [name for name in {**about, **earlier} if name != "runs"]
    differing = [name for name in names if earlier.get(name) != about.get(name)]
    if differing:
        raise ValueError(
            f"output: {output} holds results of another {', '.join(differing)} (see its "
            f"{_SETTINGS_FILE}); choose another folder, or remove this one"
        )
    return earlier["runs"]


def _as_described_today(earlier):
    """Return a description by another version of the package in this version's form.

    Parameters that the other version lacks had their defaults of then.  The version itself does
    not matter: the same seeds give the same results with any version, unlike with other packages.
    """
    defaults = {**json.loads(json.dumps(GLMClassifier().get_params())), **SETTINGS["package"]}
    return {
        **earlier,
        "settings": {
            name: _fixed(name, {**defaults, **used}) for name, used in earlier["settings"].items()
        },
        "versions": {**earlier["versions"], "glmbrian": __version__},
    }


def _fixed(name, parameters):
    """Leave out the learning rate from the parameters of the settings `name` if it is selected."""
    selects_rate = name in SETTINGS and "learning_rate" not in SETTINGS[name]
    return {
        key: value for key, value in parameters.items() if key != "learning_rate" or not selects_rate
    }


def _write_json(path, content):
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n", "output")
