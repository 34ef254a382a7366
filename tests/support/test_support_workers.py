"""Threads on blocks of data: results in order, and linear algebra's own threads afterwards."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from glmbrian.support.workers import Workers


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.parametrize("most", [1, 3])
def test_results_come_in_order(monkeypatch, most):
    monkeypatch.setattr(Workers, "most", most)
    started = []

    def work(item):
        started.append(item)
        time.sleep(0.001 * (item % 3))
        return item

    with Workers() as workers:
        results = workers.map(work, range(50))
        assert next(results) == 0
        assert len(started) < 12  # the rest waits until results are taken
        assert list(results) == list(range(1, 50))
        with pytest.raises(ZeroDivisionError):
            list(workers.map(lambda item: 1 / item, [1, 0]))


def test_linear_algebra_has_one_thread_while_anybody_works():
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        first, second = Workers(), Workers()
        first.__enter__()
        second.__enter__()
        assert first.n == second.n == min(2, max(before))
        assert set(blas_threads()) == {1}
        first.__exit__()
        assert set(blas_threads()) == {1}
        second.__exit__()
        assert blas_threads() == before


def test_a_second_interrupt_leaves_the_threads_of_linear_algebra(monkeypatch):
    def interrupted(self, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Workers, "most", 2)
    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", interrupted)
    before = blas_threads()
    with pytest.raises(KeyboardInterrupt), Workers():
        pass
    assert blas_threads() == before


def test_long_work_ends_when_nobody_needs_it(monkeypatch):
    monkeypatch.setattr(Workers, "most", 2)

    def work(item):
        while item:
            time.sleep(0.001)
            workers.go_on()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Workers() as workers:
        list(workers.map(work, range(4)))
