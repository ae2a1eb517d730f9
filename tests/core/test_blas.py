"""Limits on the threads of BLAS."""

from threadpoolctl import threadpool_info, threadpool_limits

from lanam.core import blas


def numbers_of_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_threads_are_limited_within_the_context_only():
    with threadpool_limits(2, user_api="blas"):
        with blas.limited_threads(1):
            assert numbers_of_threads() == {1}
            with blas.limited_threads(2):
                assert numbers_of_threads() == {2}
            assert numbers_of_threads() == {1}
        assert numbers_of_threads() == {2}


def test_libraries_are_searched_once(monkeypatch):
    with blas.limited_threads(1):
        pass
    monkeypatch.setattr(blas, "ThreadpoolController", None)
    with blas.limited_threads(1):
        assert numbers_of_threads() == {1}
