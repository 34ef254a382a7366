"""Neo's spike trains become recordings, and recordings Neo's spike trains."""

import sys

import numpy as np
import pytest
from brian2 import Hz, Network, PoissonGroup, SpikeMonitor, defaultclock, ms, second

from glmbrian.interop import Recording, from_neo, to_neo


def test_what_to_install_if_neo_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "neo", None)
    with pytest.raises(ImportError, match=r"Neo is not installed.*pip install '\.\[interop\]'"):
        from_neo([])
    with pytest.raises(ImportError, match="Neo is not installed"):
        to_neo(Recording([[0.5]], 0, 1))


class TestWithNeo:
    @pytest.fixture(autouse=True)
    def neo(self):
        self.neo = pytest.importorskip("neo", reason="neo is not installed")

    def train(self, times, t_start=0, t_stop=10, units="ms", **kwds):
        return self.neo.SpikeTrain(times, units=units, t_start=t_start, t_stop=t_stop, **kwds)

    def segment(self, *trains):
        segment = self.neo.Segment()
        segment.spiketrains.extend(trains)
        return segment

    def test_units_and_names(self):
        recording = from_neo(
            [
                self.train([12, 17.5], 10, 20, name="pyramidal"),
                self.train([], 0.01, 0.02, units="s", area="V1"),
                self.train([11000], 10000, 20000, units="us"),
            ]
        )
        assert recording.names == ["pyramidal", "1", "2"]
        assert (recording.t_start, recording.t_stop) == (10 * ms, 20 * ms)
        expected = np.zeros((10, 3))
        expected[[2, 7, 1], [0, 0, 2]] = 1
        np.testing.assert_array_equal(recording.trains(1 * ms), expected)

    def test_one_train_a_segment_and_a_block(self):
        train = self.train([3])
        for spikes in (train, [train], (train,), self.segment(train), self.segment(train).spiketrains):
            assert from_neo(spikes).trains(1 * ms).ravel().tolist() == [0, 0, 0, 1] + 6 * [0]
        block = self.neo.Block()
        block.segments.extend(
            [
                self.segment(train, self.train([5])),
                self.segment(self.train([30], 20, 40), self.train([], 20, 40)),
            ]
        )
        first, second_trial = from_neo(block)
        assert first.trains(1 * ms).sum(0).tolist() == [1, 1]
        assert second_trial.t_start == 20 * ms and second_trial.trains(1 * ms)[10].tolist() == [1, 0]
        assert [trial.t_stop / ms for trial in from_neo(block.segments[1:], t_stop=25 * ms)] == [25]
        with pytest.raises(ValueError, match="unit '0' has not been observed .* 0 s to 0.025 s"):
            from_neo(block, t_stop=25 * ms)

    def test_trains_that_do_not_end_together(self):
        trains = [self.train([3, 8], 0, 8), self.train([1], 0, 10)]
        with pytest.raises(
            ValueError, match=r"same t_stop, got 8\. ms to 10\. ms; pass t_stop, within .* to 0.008 s"
        ):
            from_neo(trains)
        assert from_neo(trains, t_stop=8 * ms).trains(1 * ms).sum(0).tolist() == [1, 1]
        cut = from_neo(trains, t_start=2 * ms, t_stop=8 * ms)
        assert cut.trains(1 * ms).T.tolist() == [[0, 1, 0, 0, 0, 0], [0] * 6]

    def test_time_that_nobody_observed_is_not_silence(self):
        early, late = self.train([30], 0, 100), self.train([30], 20, 90, name="late")
        for times in ({"t_stop": 0.2}, {"t_start": 0 * ms, "t_stop": 100 * ms}, {"t_start": -1}):
            with pytest.raises(ValueError, match="has not been observed all the time|same t_st"):
                from_neo([early, late], **times)
        with pytest.raises(
            ValueError, match="unit 'late' .* from 0.01 s to 0.09 s, but from 0.02 s to"
        ):
            from_neo([early, late], t_start=10 * ms, t_stop=90 * ms)
        both = from_neo([early, late], t_start=20 * ms, t_stop=90 * ms)
        assert both.trains(10 * ms).shape == (7, 2)
        train = self.train([1.0, np.nan, 3.0], name="sorted twice")
        for times in ({}, {"t_start": 0, "t_stop": 0.01}):
            with pytest.raises(ValueError, match="'sorted twice' has 1 spike time"):
                from_neo(train, **times)

    def test_times_as_neo_has_them(self):
        train = self.train([12], 10, 20)
        part = from_neo(train, t_stop=self.neo.SpikeTrain([], t_stop=15, units="ms").t_stop)
        assert (part.t_start, part.t_stop) == (10 * ms, 15 * ms)

    def test_brian_to_neo_and_back_to_brian(self):
        group = PoissonGroup(4, [200, 0, 400, 100] * Hz)
        monitor = SpikeMonitor(group)
        net = Network(group, monitor)
        net.run(200 * ms)
        trains = to_neo(Recording.from_monitor(monitor, 0 * second, net.t, list("abcd")))
        assert [train.name for train in trains] == list("abcd")
        assert [len(train) for train in trains] == monitor.count[:].tolist()
        assert all(float(train.t_stop.rescale("ms")) == pytest.approx(200) for train in trains)
        source = from_neo([train.rescale("ms") for train in trains]).source()
        again = SpikeMonitor(source)
        Network(source, again).run(200 * ms)
        steps = [
            sorted(zip(np.round(spikes.t / defaultclock.dt).tolist(), spikes.i[:].tolist()))
            for spikes in (monitor, again)
        ]
        assert len(steps[0]) > 0 and steps[0] == steps[1]

    @pytest.mark.parametrize("writer", ["PickleIO", "NeoMatlabIO", "NixIO"])
    def test_a_file(self, tmp_path, writer):
        if writer == "NixIO":
            pytest.importorskip("nixio", reason="nixio is not installed")
        trains = np.random.default_rng(3).integers(0, 2, (50, 3))
        trains[:, 1] = 0
        recording = Recording.from_trains(trains, 1 * ms, 2 * second, ["a", "b", "c"])
        block = self.neo.Block()
        block.segments.append(self.segment(*to_neo(recording)))
        path = str(tmp_path / "spikes.file")
        file = getattr(self.neo.io, writer)(path)
        file.write_block(block)
        if writer == "NixIO":
            file.close()
            file = self.neo.io.NixIO(path, "ro")
        read = from_neo(file.read_block())[0]
        np.testing.assert_array_equal(read.trains(1 * ms), trains)
        assert (read.names, read.t_start) == (["a", "b", "c"], 2 * second)

    def test_blocks_as_readers_give_them(self):
        blocks = [self.neo.Block(), self.neo.Block()]
        blocks[0].segments.extend([self.segment(self.train([1])), self.segment(self.train([2]))])
        blocks[1].segments.append(self.segment(self.train([3])))
        for spikes in (blocks, [*blocks[0].segments, blocks[1]]):
            steps = [np.flatnonzero(each.trains(1 * ms)).tolist() for each in from_neo(spikes)]
            assert steps == [[1], [2], [3]]
        blocks[1].segments.append(self.neo.Segment(name="no units sorted"))
        with pytest.raises(ValueError, match="segment 'no units sorted' must hold .* if len"):
            from_neo(blocks)
        with pytest.raises(TypeError, match="blocks and segments only"):
            from_neo([blocks[0], self.train([1])])
        with pytest.raises(ValueError, match="a Block must hold at least one Segment"):
            from_neo(self.neo.Block())

    def test_names_that_are_numbers(self):
        assert from_neo([self.train([1], name=0), self.train([2], name=7)]).names == ["0", "7"]

    def test_other_things(self):
        with pytest.raises(TypeError, match=r"not a path: neo.get_io\('session.nix'\).read"):
            from_neo("session.nix")
        for other in (3, None, [[1, 2]], Recording([[0.5]], 0, 1)):
            with pytest.raises(TypeError, match="spikes must be a neo.SpikeTrain"):
                from_neo(other)
        with pytest.raises(ValueError, match="at least one SpikeTrain"):
            from_neo(self.neo.Segment())
        with pytest.raises(TypeError, match="t_stop must be a time"):
            from_neo(self.train([1]), t_stop=1 * Hz)
        with pytest.raises(TypeError, match="recording must be a Recording"):
            to_neo(self.train([1]))
