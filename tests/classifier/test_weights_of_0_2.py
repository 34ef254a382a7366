"""Gradient ascent learns what version 0.2.0.dev0 learned before it had optimisers.

`weights_of_0_2.py` also compares all bits, on the machine on which the file was written.
"""

import warnings
from pathlib import Path

import numpy as np
import pytest
from brian2 import prefs
from weights_of_0_2 import CASES, ensemble, fitted, trained

BEFORE = np.load(Path(__file__).parents[1] / "fixtures" / "v0_2" / "weights.npz")

#: How each result in the file is computed again.
AGAIN = {
    **{name: lambda on, name=name: fitted(name, on) for name in CASES},
    "ensemble": ensemble,
    **{f"trainer, batches of {n}": lambda on, n=n: trained(on, n) for n in (1, 4)},
}

USUAL = {"runtime: hidden, rate, linear, mean"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in USUAL else pytest.mark.exhaustive)
        for name in BEFORE.files
        if not name.startswith("genn")
    ],
)
def test_the_same_weights(name):
    prefs.codegen.target = "numpy"
    on, _, case = name.partition(": ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of them diverge
        found = AGAIN[case](on)
    np.testing.assert_allclose(found, BEFORE[name], rtol=0, atol=1e-9)
