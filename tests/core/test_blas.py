"""Threads of the libraries of linear algebra."""

from threadpoolctl import threadpool_info, threadpool_limits

from lanam.core import blas


def numbers_of_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_threads_are_limited_while_it_lasts_and_then_as_they_were():
    with threadpool_limits(2, user_api="blas"):
        with blas.limited_threads(1):
            assert numbers_of_threads() == {1}
            with blas.limited_threads(2):
                assert numbers_of_threads() == {2}
            assert numbers_of_threads() == {1}
        assert numbers_of_threads() == {2}


def test_libraries_are_looked_for_once(monkeypatch):
    with blas.limited_threads(1):
        pass
    monkeypatch.setattr(blas, "ThreadpoolController", None)
    with blas.limited_threads(1):
        assert numbers_of_threads() == {1}
