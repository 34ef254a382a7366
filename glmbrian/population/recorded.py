"""Recorded data, read and checked once: what fits, scores and tests all take."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from brian2 import Quantity
from numpy.typing import NDArray

from ..brian.time_steps import is_same_step
from ..core.bases import Basis
from ..support.validation import plain_array, warn
from ..timed.data import Aligned, aligned
from ..timed.requests import steps_of_epochs
from ..timed.timeline import Timeline
from .observations import Observations
from .parameters import PopulationParameters, by_kernel
from .series import EventSeries, Series, as_series, check_inputs, check_outputs, largest_values

#: The argument `epochs`.
Epochs = Sequence[tuple[Any, Any]] | None


@dataclass(frozen=True, eq=False)
class RecordedData:
    """Recorded data of matching shapes and checked values, wherever they are kept.

    Attributes
    ----------
    inputs : dict of str to Series
    outputs : Series
    dt : Quantity or None
    epochs : list of (int, int)
        Sorted; the first step of each and the step after its last one.  Nothing has an effect across
        a gap in the times, so an epoch with gaps is several.
    mask : ndarray of bool, shape (T,), or None
        The steps that count within the epochs; all if None.
    timelines : dict of str to Timeline
        When the steps are, from each argument that knows its times: "outputs", "inputs['name']", "mask".
    largest : dict of str to ndarray of float, shape (n_source,)
        The largest absolute values of the inputs.
    offsets : dict of str to ndarray of float, shape (n_source,)
        Of data to be fitted, typical values of inputs that vary little around them; else 0.
    most : float
        No output is larger.
    """

    inputs: dict[str, Series]
    outputs: Series
    epochs: list[tuple[int, int]]
    mask: NDArray[np.bool_] | None = None
    dt: Quantity | None = None
    timelines: dict[str, Timeline] = field(default_factory=dict)
    largest: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    offsets: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    most: float = 1.0

    @property
    def n_steps(self) -> int:
        """Number of steps, T."""
        return self.outputs.n_steps

    @property
    def n(self) -> int:
        """Number of neurons."""
        return self.outputs.n_units

    @cached_property
    def n_counted(self) -> int:
        """Number of steps that count."""
        if self.mask is None:
            return sum(stop - start for start, stop in self.epochs)
        return int(sum(np.count_nonzero(self.mask[start:stop]) for start, stop in self.epochs))

    def counted(self) -> NDArray[np.bool_]:
        """Return which steps count, shape (T,)."""
        counted = np.zeros(self.n_steps, dtype=bool)
        for start, stop in self.epochs:
            counted[start:stop] = True if self.mask is None else self.mask[start:stop]
        return counted


def recorded(
    outputs: Any,
    inputs: Any,
    kernels: Mapping[str, Basis],
    observations: Observations,
    dt: Quantity | None,
    mask: Any = None,
    epochs: Epochs = None,
    *,
    n: int | str = "n",
    n_sources: Mapping[str, int] | None = None,
    window: int | None = None,
    to_fit: bool = False,
) -> RecordedData:
    """Return recorded data as series of one length.

    Parameters
    ----------
    outputs, inputs, kernels, dt, mask, epochs
        As for `fit_population`.  Outputs may be None if there are inputs and `n` is a number; then
        no neuron spikes.
    observations : Observations
        Says which values outputs may have.
    n : int or str
        The number of neurons, or its name if any number is allowed.
    n_sources : dict of str to int, optional
        The number of sources of each kernel; any by default.
    window : int, optional
        The longest window of the kernels.  No step that counts may follow a gap in the times by less,
        unless its epoch begins after the gap.  By default data may have gaps anywhere.
    to_fit : bool
        Whether a fit must be able to square the inputs.
    """
    given = inputs_of(inputs, kernels)
    labels = {name: f"inputs[{name!r}]" for name in kernels}
    data = {labels[name]: given[name] for name in kernels}
    if outputs is not None:
        data["outputs"] = outputs
    elif not kernels:
        raise ValueError("outputs are needed if there are no inputs, to know the number of steps")
    together = aligned(data, dt, None if mask is None else {"mask": mask})
    values = together.values
    n_steps: Any = "T"
    series: dict[str, Series] = {}
    for name, label in labels.items():
        n_source = "n_source" if n_sources is None else n_sources[name]
        series[name] = as_series(values[label], label, n_steps, n_source)
        n_steps = series[name].n_steps
    if outputs is None:
        trains: Series = EventSeries([np.empty(0, dtype=np.int64)] * int(n), n_steps)
    else:
        trains = as_series(values["outputs"], "outputs", n_steps, n)
    counted = checked_mask(values.get("mask"), trains.n_steps)
    timelines = sorted(together.timelines.items(), key=lambda item: item[0] != "outputs")
    parts = steps_of_epochs(epochs, trains.n_steps, together.dt, [each for _, each in timelines])
    if counted is not None and not any(counted[start:stop].any() for start, stop in parts):
        raise ValueError("mask must leave at least one step of the epochs")
    if window is not None:
        _require_no_gap(together, parts, epochs is not None, counted, window)
    found = RecordedData(
        series, trains, _split(parts, together.breaks), counted, together.dt, together.timelines
    )
    return _checked(found, labels, observations, to_fit)


def _checked(data, labels, observations, to_fit):
    """Return data after a look at all values."""
    if to_fit:
        require_steps_in_rows(data)
        if data.n == 0:
            raise ValueError("outputs must have at least one neuron")
        counted = data.counted()
        found = {name: check_inputs(x, labels[name], counted) for name, x in data.inputs.items()}
    else:
        found = {
            name: (np.zeros(x.n_units), largest_values(x, labels[name]))
            for name, x in data.inputs.items()
        }
    most = check_outputs(data.outputs, observations)
    offsets, largest = ({name: each[part] for name, each in found.items()} for part in (0, 1))
    return replace(data, largest=largest, offsets=offsets, most=most)


def _require_no_gap(together: Aligned, parts, has_epochs, mask, window):
    """Raise if a step that counts follows a gap so closely that its past is not known."""
    for gap, name in together.breaks.items():
        number = next((k for k, (start, stop) in enumerate(parts) if start < gap < stop), None)
        if number is None or (mask is not None and not mask[gap : gap + window].any()):
            continue
        timeline = together.timelines[name]
        between = (
            f"there is a gap between step {gap - 1}, at {timeline.clock.text(timeline.time(gap - 1))}, and "
            f"step {gap}, at {timeline.clock.text(timeline.time(gap))}"
        )
        one_each = "give epochs that do not contain a gap (the first steps of an epoch see nothing from before it)"
        leave_out = (
            f"a mask that leaves out, after each gap, as many steps as the longest window, "
            f"mask[{gap}:{gap + window}] = False"
        )
        if mask is not None:
            raise ValueError(
                f"mask must leave out the {window} steps after each gap in the times, since they would "
                f"see what was before it: in {name}, {between}; set mask[{gap}:{gap + window}] = False, or "
                + one_each
            )
        if has_epochs:
            raise ValueError(
                f"epochs must not contain a gap in the times, but in {name}, {between}: end an epoch at "
                f"step {gap} and begin another one there, or give {leave_out}"
            )
        raise ValueError(f"{name} must be in equal steps, but {between}: {one_each}, or {leave_out}")


def _split(parts, breaks):
    """Return epochs that end at each gap, and begin again after it."""
    split = []
    for start, stop in parts:
        edges = [start, *(gap for gap in breaks if start < gap < stop), stop]
        split.extend(zip(edges[:-1], edges[1:]))
    return split


def read(
    populations: Sequence[PopulationParameters],
    outputs: Any,
    inputs: Any = None,
    mask: Any = None,
    epochs: Epochs = None,
    may_have_gaps: bool = False,
) -> RecordedData:
    """Return recorded data for one or more populations of as many neurons.

    Parameters
    ----------
    populations : sequence of PopulationParameters
    outputs, inputs, mask, epochs
        As for `fit_population`.  Outputs may be None if data may have gaps anywhere.
    may_have_gaps : bool
        Whether there may be gaps in the times anywhere.
    """
    first = populations[0]
    if outputs is None and not may_have_gaps:
        raise TypeError(f"outputs must be an array of the shape (T, {first.n}), got None")
    kernels: dict[str, Basis] = {}
    sizes: dict[str, int] = {}
    given: dict[str, Any] = {}
    dt, bases = first.dt, []
    for each in populations:
        given |= inputs_of(inputs, each.kernels)
        kernels |= each.kernels
        bases += [*each.kernels.values(), each.feedback_basis]
        for name, weights in each.weights.items():
            if sizes.setdefault(name, len(weights)) != len(weights):
                raise ValueError(
                    f"inputs[{name!r}] cannot be for all models, which have kernels from {sizes[name]} and "
                    f"from {len(weights)} sources"
                )
        if each.observations.dtype != first.observations.dtype:
            raise ValueError(
                f"models must be of the same observations, got {str(first.observations)!r} and "
                f"{str(each.observations)!r}"
            )
        if dt is not None and each.dt is not None and not is_same_step(dt, each.dt):
            raise ValueError(f"models must have the same step, got {dt} and {each.dt}")
        dt = each.dt if dt is None else dt
    return recorded(
        outputs, given, kernels, first.observations, dt, mask, epochs, n=first.n, n_sources=sizes,
        window=None if may_have_gaps else longest_window(bases),
    )  # fmt: skip


def inputs_of(inputs: Any, kernels: Mapping[str, Basis]) -> dict[str, Any]:
    """Return the input of each of the `kernels`; a dict may hold the inputs of other models, too."""
    if isinstance(inputs, dict) and set(inputs) > set(kernels):
        return {name: inputs[name] for name in kernels}
    if inputs is not None and not isinstance(inputs, dict) and not kernels:
        raise ValueError(
            "inputs must be left out, or be a dict by name of kernel, if there are no kernels: write "
            'inputs={"stimulus": x} to give the same inputs to models with and without this kernel'
        )
    return by_kernel(inputs, "inputs", kernels)


def longest_window(bases: Iterable[Basis | None]) -> int:
    """Return the longest window of some bases, which may be None; 0 if there is none."""
    return max((basis.window for basis in bases if basis is not None), default=0)


def require_steps_in_rows(data: RecordedData) -> None:
    """Raise if outputs seem to have a row for each neuron, and warn if inputs have more sources than steps.

    Data that know their times have a row for each step.
    """
    n_steps, n = data.n_steps, data.outputs.n_units
    if data.timelines or n_steps < 2:
        return
    if n > n_steps:
        raise ValueError(
            f"outputs must have the shape (T, n), a row for each step and a column for each neuron, but "
            f"with the shape ({n_steps}, {n}) there are more neurons than steps. If its rows are neurons, "
            "transpose it: outputs.T (also in inputs). If there really are so few steps, pass "
            "glmbrian.interop.Recording.from_trains(outputs, dt)"
        )
    for name, series in data.inputs.items():
        if series.n_units > n_steps:
            warn(
                f"inputs[{name!r}] has the shape ({n_steps}, {series.n_units}), more sources than steps; "
                "the shape must be (T, n_source), a row for each step",
                RuntimeWarning,
            )


def checked_mask(mask: Any, n_steps: int) -> NDArray[np.bool_] | None:
    """Return a mask of steps as an array, or None for all steps."""
    if mask is None:
        return None
    counted = plain_array(mask, "mask", "bool")
    if counted.dtype != bool or counted.shape != (n_steps,):
        raise ValueError(
            f"mask must be an array of bool of the shape ({n_steps},), got {counted.dtype} of "
            f"{counted.shape}"
        )
    if not counted.any():
        raise ValueError("mask must leave at least one step")
    return counted
