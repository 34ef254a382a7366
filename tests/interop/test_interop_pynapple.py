"""Spike times of pynapple become recordings."""

import sys

import numpy as np
import pytest
from brian2 import ms, second

import glmbrian as glm
from glmbrian.interop import Recording, from_neo, from_pynapple


def test_what_to_install_if_pynapple_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynapple", None)
    with pytest.raises(ImportError, match="pynapple is not installed.*pip install pynapple"):
        from_pynapple([])


class TestWithPynapple:
    @pytest.fixture(autouse=True)
    def pynapple(self):
        self.nap = pytest.importorskip("pynapple", reason="pynapple is not installed")

    def group(self, start=0, stop=1):
        times = {3: self.nap.Ts([0.1, 0.25]), 7: self.nap.Ts([0.5]), 9: self.nap.Ts([0.95])}
        return self.nap.TsGroup(times, time_support=self.nap.IntervalSet(start, stop))

    def test_units_and_names(self):
        recording = from_pynapple(self.group())
        assert recording.names == ["3", "7", "9"]
        assert (recording.t_start, recording.t_stop) == (0 * ms, 1 * second)
        expected = np.argwhere(recording.trains(50 * ms)).tolist()
        assert expected == [[2, 0], [5, 0], [10, 1], [19, 2]]
        part = from_pynapple(self.group(), t_start=200 * ms, t_stop=600 * ms)
        assert np.argwhere(part.trains(50 * ms)).tolist() == [[1, 0], [6, 1]]
        assert len(from_pynapple(self.group()[3])) == 1

    def test_time_that_nobody_observed_is_not_silence(self):
        with pytest.raises(ValueError, match="the unit '3' has not been observed .* from 0 s to 2 s"):
            from_pynapple(self.group(), t_stop=2)
        group = self.group([0, 0.6], [0.4, 1.0])
        with pytest.raises(ValueError, match="t_start must be given.*several"):
            from_pynapple(group)
        assert from_pynapple(group, 0.6, 1).trains(0.1).sum() == 1

    def test_trains_that_pynapple_has_binned(self):
        counts = self.group().count(0.05)
        recording = Recording.from_trains(counts)
        assert recording.dt == 50 * ms
        np.testing.assert_array_equal(recording.trains(), from_pynapple(self.group()).trains(50 * ms))
        with pytest.raises(ValueError, match=r"^trains is in steps of 50\. ms, and dt is 1\. ms"):
            Recording.from_trains(counts, 1 * ms)

    def test_other_things(self):
        for other in (3, "spikes", [0.1], self.group().count(0.1)):
            with pytest.raises(TypeError, match="^spikes must be a TsGroup, Ts or Tsd"):
                from_pynapple(other)
        with pytest.raises(TypeError, match="^times must be .*from_pynapple"):
            Recording(self.group(), 0, 1)
        with pytest.raises(TypeError, match=r"^times\[0\] must be an array.*from_pynapple"):
            Recording([self.group()[3]], 0, 1)
        with pytest.raises(TypeError, match="^bias must be an array.*from_pynapple"):
            glm.GLMPopulation(self.group(), {}, {})

    def test_neo_says_where_it_belongs(self):
        pytest.importorskip("neo", reason="neo is not installed")
        with pytest.raises(TypeError, match="^spikes must be a neo.SpikeTrain"):
            from_neo(self.group())
