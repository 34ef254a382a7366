"""Units of NWB files become recordings, and recordings NWB files."""

import sys
from datetime import datetime, timezone

import numpy as np
import pytest
from brian2 import Hz, ms, second

from glmbrian.interop import Recording, from_nwb, to_nwb


def test_what_to_install_if_pynwb_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynwb", None)
    with pytest.raises(ImportError, match=r"pynwb is not installed.*pip install '\.\[interop\]'"):
        from_nwb("session.nwb")
    with pytest.raises(ImportError, match="pynwb is not installed"):
        to_nwb(Recording([[0.5]], 0, 1), "session.nwb")


class TestWithPynwb:
    @pytest.fixture(autouse=True)
    def pynwb(self):
        self.pynwb = pytest.importorskip("pynwb", reason="pynwb is not installed")

    def nwbfile(self, times, intervals=None, ids=None, **columns):
        nwbfile = self.pynwb.NWBFile(
            session_description="test",
            identifier="test",
            session_start_time=datetime(2020, 1, 1, tzinfo=timezone.utc),
        )
        for name in columns:
            nwbfile.add_unit_column(name, name)
        for unit, of_unit in enumerate(times):
            more = {name: column[unit] for name, column in columns.items()}
            if intervals is not None:
                more["obs_intervals"] = intervals[unit]
            if ids is not None:
                more["id"] = ids[unit]
            nwbfile.add_unit(spike_times=np.array(of_unit, dtype=float), **more)
        return nwbfile

    def test_a_file_of_somebody_else(self, tmp_path):
        nwbfile = self.nwbfile(
            [[0.1, 0.5], [], [0.3, 0.95]], ids=[7, 8, 12], quality=["good", "good", "noise"]
        )
        path = tmp_path / "session.nwb"
        with self.pynwb.NWBHDF5IO(str(path), "w") as file:
            file.write(nwbfile)
        recording = from_nwb(path, t_start=0, t_stop=1 * second)
        assert recording.names == ["7", "8", "12"]
        assert np.argwhere(recording.trains(100 * ms)).tolist() == [[1, 0], [3, 2], [5, 0], [9, 2]]
        with self.pynwb.NWBHDF5IO(str(path), "r") as file:
            read = file.read()
            good = from_nwb(read, read.units["quality"][:] == "good", 0.2, 0.7)
        assert good.names == ["7", "8"]
        assert np.argwhere(good.trains(0.1)).tolist() == [[3, 0]]
        assert from_nwb(str(path), [2, 0], 0, 1).names == ["12", "7"]
        assert from_nwb(path, [-1], 0, 1).names == ["12"]

    def test_the_interval_is_that_in_which_units_were_observed(self):
        one = [[[1.0, 2.0]], [[1.0, 2.0]]]
        recording = from_nwb(self.nwbfile([[1.5], [1.25, 2.0]], one))
        assert (recording.t_start, recording.t_stop) == (1 * second, 2 * second)
        assert recording.trains(0.5).tolist() == [[0, 1], [1, 1]]
        assert from_nwb(self.nwbfile([[1.5], [1.25]], one), t_stop=1.4).trains(0.1).sum() == 1
        with pytest.raises(ValueError, match="unit '0' has not been observed .* 0.5 s to 2 s"):
            from_nwb(self.nwbfile([[1.5], [1.25]], one), t_start=0.5)

    def test_several_intervals(self):
        nwbfile = self.nwbfile(
            [[0.5, 2.5], [0.25]], [[[0.0, 1.0], [2.0, 3.0], [3.0, 4.0]], [[0.0, 4.0]]]
        )
        with pytest.raises(ValueError, match="t_start must be given.*several.*from 0.25 s to 2.5 s"):
            from_nwb(nwbfile)
        assert from_nwb(nwbfile, t_start=2, t_stop=4).trains(0.5).T.tolist() == [[0, 1, 0, 0], [0] * 4]
        with pytest.raises(ValueError, match="the unit '0' has not been observed"):
            from_nwb(nwbfile, t_start=0, t_stop=4)
        assert from_nwb(nwbfile, [1], t_start=0, t_stop=4).trains(1).ravel().tolist() == [1, 0, 0, 0]

    def test_times_are_not_guessed(self):
        with pytest.raises(ValueError, match="t_start must be given.*0.5 s to 0.75 s"):
            from_nwb(self.nwbfile([[0.5, 0.75]]))
        with pytest.raises(ValueError, match="t_stop must be given.*intervals$"):
            from_nwb(self.nwbfile([[]]), t_start=0)

    @pytest.mark.parametrize("times", [{}, {"t_start": 0, "t_stop": 1}])
    def test_times_that_are_not_finite_are_refused(self, times):
        nwbfile = self.nwbfile([[0.5], [0.25, np.nan]], [[[0, 1]], [[0, 1]]])
        with pytest.raises(ValueError, match="the unit '1' has 1 spike time.* NaN"):
            from_nwb(nwbfile, **times)
        assert from_nwb(nwbfile, [0], **times).trains(0.5).ravel().tolist() == [0, 1]

    def test_units_in_a_processing_module(self, tmp_path):
        nwbfile = self.nwbfile([])
        tables = []
        for name in ("ecephys", "behavior"):
            table = self.pynwb.misc.Units(name="units", description="sorted")
            table.add_unit(spike_times=[0.1, 0.5], obs_intervals=[[0.0, 1.0]])
            nwbfile.create_processing_module(name, name).add(table)
            tables.append(table)
            if name == "ecephys":
                path = tmp_path / "processed.nwb"
                with self.pynwb.NWBHDF5IO(str(path), "w") as file:
                    file.write(nwbfile)
        assert np.flatnonzero(from_nwb(path).trains(0.1)).tolist() == [1, 5]
        with pytest.raises(ValueError, match=r"several units tables; .*\['behavior'\]\['units'\]"):
            from_nwb(nwbfile)
        assert len(from_nwb(nwbfile.processing["behavior"]["units"]).times[0]) == 2

    @pytest.mark.parametrize("silent", [False, True])
    def test_write_and_read(self, tmp_path, silent):
        trains = np.random.default_rng(5).integers(0, 2, (40, 4))
        trains[:, 2] = 0
        if silent:
            trains[:] = 0
        recording = Recording.from_trains(trains, 1 * ms, -10 * ms, ["a", "b", "c", "d"])
        path = tmp_path / "simulated.nwb"
        to_nwb(recording, path, session_description="three neurons and a silent one")
        read = from_nwb(path)
        assert read.names == recording.names
        assert read.t_start == -10 * ms and read.t_stop == 30 * ms
        np.testing.assert_array_equal(read.trains(1 * ms), trains)
        for own, other in zip(read.times, recording.times):
            np.testing.assert_array_equal(np.asarray(own), np.asarray(other))
        before = path.read_bytes()
        with pytest.raises(FileExistsError, match="already"):
            to_nwb(recording, path)
        assert path.read_bytes() == before

    def test_the_file_is_valid_nwb(self, tmp_path):
        path = tmp_path / "simulated.nwb"
        start = datetime(2021, 2, 3, tzinfo=timezone.utc)
        to_nwb(Recording([[0.5], []], 0, 1), str(path), session_start_time=start)
        with self.pynwb.NWBHDF5IO(str(path), "r") as file:
            assert not self.pynwb.validate(io=file)
            assert file.read().session_start_time == start

    def test_other_things(self, tmp_path):
        nwbfile = self.nwbfile([[0.5], [0.5]])
        with pytest.raises(TypeError, match="source must be a path or a pynwb.NWBFile"):
            from_nwb(3)
        with pytest.raises(FileNotFoundError, match="^source: cannot read .*missing.nwb"):
            from_nwb(tmp_path / "missing.nwb")
        recording = Recording([[0.5]], 0, 1)
        for change, says in (
            ({"path": 3}, "path must be"),
            ({"session_start_time": "now"}, "session_start_time must be a datetime"),
            ({"session_description": 3}, "session_description must be a string"),
        ):
            with pytest.raises(TypeError, match=f"^{says}"):
                to_nwb(recording, **{"path": tmp_path / "new.nwb", **change})
        with pytest.raises(FileNotFoundError, match="^path: the folder"):
            to_nwb(recording, tmp_path / "missing" / "new.nwb")
        with pytest.raises(ValueError, match="no units table with spike_times"):
            from_nwb(self.nwbfile([]), t_start=0, t_stop=1)
        for units in ([2], [2**70], [True], [0.5], [], 1, [[0, 1]], "good", [[0], [0, 1]]):
            with pytest.raises(ValueError, match="units must be"):
                from_nwb(nwbfile, units, 0, 1)
        with pytest.raises(TypeError, match="t_start must be a time"):
            from_nwb(nwbfile, t_start=1 * Hz, t_stop=1)
        with pytest.raises(TypeError, match="recording must be a Recording"):
            to_nwb(nwbfile, tmp_path / "new.nwb")
        assert not (tmp_path / "new.nwb").exists()
