"""The result of a command, for people."""

from collections.abc import Mapping
from typing import Any, TextIO

_LINES = {
    "accuracy": ("test accuracy", "{:.4f}"),
    "attacked_accuracy": ("after the attack", "{:.4f}"),
    "random_accuracy": ("after random changes", "{:.4f}"),
    "certified_accuracy": ("certified accuracy", "{:.4f}"),
    "attack_seconds": ("seconds of the attack", "{:.1f}"),
    "mean_decision_step": ("mean decision step", "{:.2f} of {n_steps}"),
    "silent_fraction": ("without any spike", "{:.2%}"),
    "operations_per_class": ("operations per class", "{:.1f}"),
    "hidden_spikes": ("hidden spikes", "{:.1f}"),
    "presentations_per_second": ("presentations a second", "{:,.0f}"),
    "build_seconds": ("seconds to build", "{:.1f}"),
    "run_seconds": ("seconds to run", "{:.1f}"),
    "peak_memory": ("memory of the program", "{:.0f} MB"),
    "seconds": ("total seconds", "{:.1f}"),
    "seconds_building": ("core seconds to build", "{:.1f}"),
    "seconds_training": ("core seconds to train", "{:.1f}"),
    "most_seconds_to_find_a_program": ("slowest program lookup", "{:.2f}"),
    "presentations": ("presentations", "{:,}"),
    "claims_that_hold": ("claims that hold", "{}"),
}


def show(result: Mapping[str, Any], stream: TextIO) -> None:
    """Print what a command has found, one line per value."""
    n_steps = result.get("n_steps")
    for name, value in result.items():
        if name == "n_steps" or value is None or isinstance(value, (dict, list)):
            continue
        label, form = _LINES.get(name, (name, "{}"))
        if name == "peak_memory":
            value /= 1e6
        print(f"{label + ':':24}{form.format(value, n_steps=n_steps)}", file=stream)
