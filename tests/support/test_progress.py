"""What a progress bar writes."""

import io
import sys

from glmbrian.support.progress import Progress


def test_progress_that_stays_at_0_writes_nothing(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("fitting", 100, show=True, unit="%") as progress:
        for _ in range(1000):
            progress(0)
    assert stream.getvalue() == ""


def test_compiling_is_shown_at_once_and_then_forgotten(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("training", 100, show=True) as progress:
        progress.compiling()
        assert "compiling" in stream.getvalue()
        for _ in range(1000):
            progress(0)
    assert stream.getvalue().count("training") < 5
