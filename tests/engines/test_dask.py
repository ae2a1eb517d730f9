"""Dask frames against the same job over the whole frame in memory.

Workers import functions from this module: they inherit the path.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from lanam.core.rows.tables import EncodedRows
from lanam.engines.dask import DaskSource, is_dask_frame
from lanam.engines.dask_tasks import Carried, merge_in_order
from lanam.engines.interface import ResultColumns

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
sizeof = pytest.importorskip("dask.sizeof").sizeof

N_ROWS, N_PARTITIONS = 330, 11


@pytest.fixture(scope="module")
def frame():
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": generator.normal(size=N_ROWS),
            "z": generator.normal(size=N_ROWS),
            "y": generator.normal(size=N_ROWS),
            "city": generator.choice(["Bern", "Chur", "Genf"], N_ROWS),
            "row": np.arange(N_ROWS),
        }
    )


@pytest.fixture
def ddf(frame):
    return dd.from_pandas(frame, npartitions=N_PARTITIONS)


def is_released(cluster, n_tables=0, seconds=5.0):
    """Whether the cluster holds nothing but tables and their inputs, after some time."""
    left = 2 * n_tables + 1 if n_tables else 0
    end = time.monotonic() + seconds
    while len(cluster.scheduler.tasks) > left and time.monotonic() < end:
        time.sleep(0.02)
    return len(cluster.scheduler.tasks) == left


# Functions, encoders and jobs


def describe(chunks):
    return [
        (chunk.place, chunk.first_row, chunk.number, list(chunk.frame), len(chunk.frame))
        for chunk in chunks
    ]


def concatenate(first, second):
    return first + second


def encode(chunk, log=None):
    if len(chunk.frame):  # an empty chunk is encoded for the number of columns
        append_log(log, chunk.number)
    columns = chunk.frame[["x", "z"]].to_numpy()
    return EncodedRows(columns, chunk.frame["y"].to_numpy(), np.ones(len(columns)), chunk.number)


def encode_positive(chunk):
    table = encode(chunk)
    rows = table.response > 0.0
    return EncodedRows(table.columns[rows], table.response[rows], table.weight[rows], table.number)


def append_log(log, number):
    if log is not None:
        with open(log, "a") as file:
            file.write(f"{number}\n")


def read_log(log):
    with open(log) as file:
        return list(file)


def products(tables):
    """Sums whose rounding depends on their order."""
    tables = list(tables)
    return (
        sum(table.columns.T @ table.columns for table in tables),
        sum(np.sum(np.exp(table.response)) for table in tables),
    )


def chunk_numbers(tables):
    return (np.concatenate([[table.number] * len(table) for table in tables]),)


def concatenate_totals(first, second):
    return tuple(np.concatenate(pair) for pair in zip(first, second, strict=True))


def process(tables):
    return (np.full(len(list(tables)), os.getpid()),)


def blas_threads(tables):
    time.sleep(0.01)  # so that tasks overlap
    return (np.array([library["num_threads"] for library in blas()]) * len(list(tables)),)


def blas():
    return [library for library in threadpool_info() if library["user_api"] == "blas"]


def slow(seconds, tables):
    time.sleep(seconds)
    return products(tables)


def kill_once(marker, number, tables):
    """Kill the worker at a table unless the marker exists."""
    (table,) = tables
    if table.number == number and not os.path.exists(marker):
        append_log(marker, number)
        os.kill(os.getpid(), signal.SIGKILL)
    return products([table])


def kill_always(number, tables):
    if tables[0].number == number:
        os.kill(os.getpid(), signal.SIGKILL)
    return products(tables)


def fail_at_seven(error, tables):
    (table,) = tables
    if table.number == 7:
        raise error
    return products([table])


def fail_at_three(chunks):
    for chunk in chunks:
        if chunk.number == 3:
            raise ValueError(f"{chunk.place}, row 5: column 'x' holds 'abc'")
    return 1


class Heavy:
    """A callable that counts how often it is pickled."""

    pickled = 0

    def __getstate__(self):
        Heavy.pickled += 1
        return {}

    def __call__(self, tables):
        return products(tables)


class HeavyModel(Heavy):
    def __call__(self, chunk):
        return chunk.frame["x"].to_numpy()


def in_memory(frame, job):
    return job([encode_frame(frame)])


def encode_frame(frame):
    return EncodedRows(frame[["x", "z"]].to_numpy(), frame["y"].to_numpy(), np.ones(len(frame)))


def tables_of(ddf, encoder=encode, **options):
    return DaskSource(ddf, **options).encoded(["x", "z", "y"], encoder)


def same_bits(first, second):
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


# Recognising Dask frames, and their metadata


def test_dask_frames_are_recognised_without_importing_dask(frame, ddf):
    assert is_dask_frame(ddf)
    assert not is_dask_frame(ddf["x"])
    assert not is_dask_frame(frame)
    code = (
        "import sys, lanam.engines.dask as engine; engine.is_dask_frame([]);"
        "assert not {'dask', 'pandas', 'distributed'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_dtypes_and_fingerprint(frame, ddf):
    source = DaskSource(ddf)
    assert source.names == ("x", "z", "y", "city", "row")
    empty = source.empty()
    assert isinstance(empty, pd.DataFrame)
    assert len(empty) == 0
    assert list(empty.dtypes) == list(ddf.dtypes)
    again = DaskSource(dd.from_pandas(frame, npartitions=N_PARTITIONS))
    other = DaskSource(dd.from_pandas(frame.assign(x=0.0), npartitions=N_PARTITIONS))
    assert again.fingerprint == source.fingerprint != other.fingerprint


def test_known_and_unknown_categories(frame):
    ordered = frame.assign(zone=pd.Categorical(frame["city"], ["Genf", "Bern", "Chur"]))
    ddf = dd.from_pandas(ordered, npartitions=3).astype({"city": "category"})
    empty = DaskSource(ddf).empty()
    assert list(empty["city"].cat.categories) == []
    assert list(empty["zone"].cat.categories) == ["Genf", "Bern", "Chur"]
    assert not ddf["city"].cat.known  # the user's frame is unchanged
    seen = DaskSource(ddf).reduce(["city"], levels, set.union)
    assert seen == {"Bern", "Chur", "Genf"}


def levels(chunks):
    return set().union(*(chunk.frame["city"].cat.categories for chunk in chunks))


def test_invalid_column_names(frame):
    numbered = dd.from_pandas(frame.rename(columns={"x": 0}), npartitions=2)
    with pytest.raises(ValueError, match=r"named 0: .* ddf\.rename\(columns=str\)"):
        DaskSource(numbered)
    DaskSource(numbered.rename(columns=str))  # the suggested remedy works
    twice = dd.from_pandas(frame.rename(columns={"x": "z"}), npartitions=2)
    with pytest.raises(ValueError, match="more than one column named 'z'"):
        DaskSource(twice)


# Chunks and how they are merged


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_chunks_are_the_partitions_in_order(frame, ddf, where, request):
    if where == "cluster":
        request.getfixturevalue("client")
    source = DaskSource(ddf)
    chunks = source.reduce(["y", "x"], describe, concatenate)
    assert chunks == [(f"partition {k}", 0, k, ["y", "x"], 30) for k in range(N_PARTITIONS)]


def test_partitions_of_parquet_keep_their_numbers(frame, tmp_path):
    for number, first in enumerate(range(0, N_ROWS, 30)):
        frame[first : first + 30].to_parquet(tmp_path / f"part-{number:02}.parquet")
    read = dd.read_parquet(tmp_path / "*.parquet")
    chunks = DaskSource(read).reduce(["x"], describe, concatenate)
    assert chunks == [(f"partition {k}", 0, k, ["x"], 30) for k in range(N_PARTITIONS)]


def test_empty_partitions_are_skipped(ddf):
    source = DaskSource(ddf[ddf["row"] >= 60])
    chunks = source.reduce(["x"], describe, concatenate)
    assert [number for _, _, number, _, _ in chunks] == list(range(2, N_PARTITIONS))
    assert sum(n_rows for *_, n_rows in chunks) == N_ROWS - 60
    tables = source.encoded(["x", "z", "y"], encode)
    assert tables.n_columns == 2
    numbers = np.unique(tables.total(chunk_numbers, concatenate_totals)[0])
    assert list(numbers) == list(range(2, N_PARTITIONS))


def test_results_of_none_are_skipped(ddf):
    assert DaskSource(ddf).reduce(["x"], even_numbers, concatenate) == [0, 2, 4, 6, 8, 10]


def even_numbers(chunks):
    return [chunk.number for chunk in chunks if chunk.number % 2 == 0] or None


def test_no_rows(ddf):
    source = DaskSource(ddf[ddf["x"] > 1e9])
    with pytest.raises(ValueError, match="the Dask frame has no rows"):
        source.reduce(["x"], describe, concatenate)
    with pytest.raises(ValueError, match="no row with a positive weight"):
        source.encoded(["x", "z", "y"], encode).total(products)
    with pytest.raises(ValueError, match="no row with a positive weight"):
        tables_of(ddf, encode_none).total(products)


def encode_none(chunk):
    table = encode(chunk)
    return EncodedRows(table.columns[:0], table.response[:0], table.weight[:0], table.number)


def names_of(chunks):
    (chunk,) = chunks
    return "abcdefghijklmnopqrstuvwxyz"[chunk.number]


def bracket(first, second):
    return f"({first}{second})"


@pytest.mark.parametrize("n_partitions", [1, 2, 3, 4, 5, 6, 7, 9, 16, 17, 21])
def test_results_are_merged_as_a_binary_tree(frame, n_partitions):
    nodes = list("abcdefghijklmnopqrstuvwxyz"[:n_partitions])
    while len(nodes) > 1:
        nodes = ["(" + "".join(pair) + ")" if len(pair) > 1 else pair[0] for pair in pairs(nodes)]
    ddf = dd.from_pandas(frame[:42], npartitions=n_partitions)
    assert ddf.npartitions == n_partitions
    with dask.config.set(scheduler="synchronous"):
        assert DaskSource(ddf).reduce(["x"], names_of, bracket) == nodes[0]


def pairs(nodes):
    return [nodes[at : at + 2] for at in range(0, len(nodes), 2)]


def test_merging_skips_none():
    a, b = Carried("a"), Carried("b")
    assert merge_in_order(bracket, None, a, None, None, b).value == "(ab)"
    assert merge_in_order(bracket, None, None) is None


# Totals


def test_totals_equal_those_in_memory(frame, ddf, client):
    tables = tables_of(ddf)
    assert tables.n_columns == 2
    there = tables.total(products)
    assert all(map(np.allclose, there, in_memory(frame, products)))
    order = tables.total(chunk_numbers, concatenate_totals)[0]
    assert list(order) == list(np.repeat(np.arange(N_PARTITIONS), 30))
    with dask.config.set(scheduler="threads"):
        here = tables_of(ddf).total(products)
    assert same_bits(here, there)


def test_rows_left_out_by_the_encoder(frame, ddf):
    total = tables_of(ddf, encode_positive).total(products)
    assert all(map(np.allclose, total, in_memory(frame[frame["y"] > 0.0], products)))


def test_scheduler_is_that_of_dask(ddf, client):
    tables = tables_of(ddf)
    assert os.getpid() not in tables.total(process, concatenate_totals)[0]
    with dask.config.set(scheduler="threads"):
        assert set(tables.total(process, concatenate_totals)[0]) == {os.getpid()}


def test_workers_encode_once_and_release_with_the_object(ddf, client, cluster, tmp_path):
    log = str(tmp_path / "log")
    tables = tables_of(ddf, partial(encode, log=log))
    assert tables.n_columns == 2
    for _ in range(3):
        tables.total(products)
    assert sorted(map(int, read_log(log))) == list(range(N_PARTITIONS))
    assert cluster.scheduler.tasks
    del tables
    assert is_released(cluster)


@pytest.mark.parametrize(("share", "later"), [(0.0, 11), (0.5, 6), (1.0, 0)])
def test_tables_kept_without_a_cluster(frame, ddf, tmp_path, share, later):
    log = tmp_path / "log"
    size = N_ROWS * 4 * 8  # two columns, a response and a weight
    tables = tables_of(ddf, partial(encode, log=log), keep=int(share * size))
    first = tables.total(products)
    assert len(log.read_text().split()) == N_PARTITIONS
    for _ in range(2):
        assert same_bits(tables.total(products), first)
    assert len(log.read_text().split()) == N_PARTITIONS + 2 * later


def test_persisted_frames(frame, ddf, client):
    total = tables_of(ddf.persist()).total(products)
    assert all(map(np.allclose, total, in_memory(frame, products)))


def test_large_jobs_are_sent_once(frame, ddf, client):
    tables = tables_of(ddf)
    tables.n_columns  # noqa: B018
    Heavy.pickled = 0
    assert all(map(np.allclose, tables.total(Heavy()), in_memory(frame, products)))
    assert 1 <= Heavy.pickled <= 3  # to the scheduler, to a worker; and once to measure it
    large = partial(scaled_sum, np.ones(2_000_000))  # Dask does not warn about it
    assert tables.total(large)[0] == N_PARTITIONS * 2_000_000


def scaled_sum(values, tables):
    return (np.array(values.sum() * len(list(tables))),)


def test_tables_are_aligned_and_column_major(ddf, client):
    with dask.config.set(scheduler="threads"):
        here = tables_of(ddf, encode_views).total(layout, concatenate_totals)[0]
    assert np.all(here)
    assert np.all(tables_of(ddf, encode_views).total(layout, concatenate_totals)[0])
    # Values are sent with aligned arrays rather than views of a buffer, and Dask knows their size.
    sizes = np.arange(1001, 1011)
    there = client.map(
        alignment_and_size, client.scatter([Carried(np.ones(size)) for size in sizes])
    )
    aligned, measured = map(np.array, zip(*client.gather(there), strict=True))
    assert np.all(aligned)
    assert np.all((measured >= 8 * sizes) & (measured < 8 * sizes + 500))
    results = tables_of(ddf).total(products)
    assert results[0].flags.aligned


def layout(tables):
    return (
        np.array(
            [
                array.flags.aligned and array.flags.f_contiguous
                for table in tables
                for array in (table.columns, table.response, table.weight)
            ]
        ),
    )


def encode_views(chunk):
    values = np.array(chunk.frame[["x", "z", "y"]], order="C")
    return EncodedRows(values[:, :2], values[:, 2], np.ones(len(values)), chunk.number)


def alignment_and_size(carried):
    return carried.value.flags.aligned, sizeof(carried)


def test_tasks_limit_blas_to_one_thread(ddf, client):
    with threadpool_limits(2, user_api="blas"):
        before = [library["num_threads"] for library in blas()]
        with dask.config.set(scheduler="threads", num_workers=3):
            assert set(tables_of(ddf).total(blas_threads, concatenate_totals)[0]) == {1}
        assert [library["num_threads"] for library in blas()] == before == [2] * len(before)
    client.run(set_blas_threads, 2)
    assert set(tables_of(ddf).total(blas_threads, concatenate_totals)[0]) == {1}


def set_blas_threads(number):
    # Limits last as long as the thread that sets them: it must not be the worker's event loop.
    thread = threading.Thread(target=threadpool_limits, args=(number, "blas"))
    thread.start()
    thread.join()


# Failures


def test_killed_worker_does_not_change_results(ddf, client, tmp_path):
    log, marker = str(tmp_path / "log"), str(tmp_path / "marker")
    tables = tables_of(ddf, partial(encode, log=log))
    before = tables.total(products)
    assert same_bits(tables.total(partial(kill_once, marker, 5)), before)
    assert os.path.exists(marker)
    assert len(read_log(log)) > N_PARTITIONS  # its tables were encoded again
    assert same_bits(tables.total(products), before)


def test_task_that_kills_its_workers_is_an_error(ddf, client, cluster):
    cluster.scheduler.allowed_failures = 0
    tables = tables_of(ddf)
    with pytest.raises(RuntimeError, match=r"out of memory: .*repartition.*allowed-failures"):
        tables.total(partial(kill_always, 5))
    assert is_released(cluster)
    assert tables.total(chunk_numbers, concatenate_totals)[0].size == N_ROWS


def test_tables_are_recomputed_after_a_restart(ddf, client, cluster):
    tables = tables_of(ddf)
    before = tables.total(products)
    assert is_released(cluster, N_PARTITIONS)
    client.cancel([distributed.Future(key, client) for key in client.futures])  # as a restart does
    assert same_bits(tables.total(products), before)


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_errors_name_the_partition(ddf, where, request, cluster):
    if where == "cluster":
        request.getfixturevalue("client")
    source, tables = DaskSource(ddf), tables_of(ddf)
    with pytest.raises(ValueError, match=r"^partition 3, row 5: column 'x' holds 'abc'$") as caught:
        source.reduce(["x"], fail_at_three, concatenate)
    # The traceback has no frames of Dask.
    files = [os.path.basename(entry.path) for entry in caught.traceback]
    assert set(files) == {"test_dask.py", "dask.py", "dask_tasks.py"}
    assert len(files) == 5
    with pytest.raises(TypeError, match=r"^partition 7: no$"):
        tables.total(partial(fail_at_seven, TypeError("no")))
    with pytest.raises(KeyError) as caught:
        tables.total(partial(fail_at_seven, KeyError("x")))
    assert caught.value.args == ("x",)
    assert caught.value.__notes__ == ["in partition 7"]
    assert is_released(cluster)
    rows = tables.total(chunk_numbers, concatenate_totals)[0]  # the tables are encoded again
    assert rows.size == N_ROWS


def test_interrupt_leaves_nothing_running(ddf, client, cluster):
    tables = tables_of(ddf)
    before = tables.total(products)
    timer = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))
    # Tests of the command line may have installed another handler.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    started = time.monotonic()
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt) as caught:  # it holds the tables, as a session would
            tables.total(partial(slow, 0.5))
    finally:
        signal.signal(signal.SIGINT, handler)
    assert time.monotonic() - started < 2.0  # the job would take two workers three seconds
    assert is_released(cluster)
    assert caught.value is not None
    assert same_bits(tables.total(products), before)


# Predictions


def mapped(function, ddf, names, dtype=float):
    return DaskSource(ddf).map(list(ddf.columns), function, ResultColumns(names, dtype))


def test_series_of_predictions(frame, ddf):
    result = mapped(twice, ddf, "prediction")
    assert result.divisions == ddf.divisions
    assert result.npartitions == N_PARTITIONS
    assert result.dtype == float
    pd.testing.assert_series_equal(result.compute(), 2.0 * frame["x"].rename("prediction"))


def twice(chunk):
    assert len(chunk.frame)
    return 2.0 * chunk.frame["x"].to_numpy()


def test_frame_of_predictions(frame, ddf):
    both = mapped(mean_and_terms, ddf, ["mean", "x", "z"]).compute()
    expected = pd.DataFrame({"mean": frame["y"], "x": frame["x"], "z": frame["z"]})
    pd.testing.assert_frame_equal(both, expected)
    cube = mapped(cubes, ddf, ["x a", "x b", "z a", "z b"]).compute()
    for term in "xz":
        assert np.array_equal(cube[f"{term} a"], frame[term])
        assert np.array_equal(cube[f"{term} b"], -frame[term])
    one = mapped(twice, ddf, ["prediction"])  # a sequence is a frame
    assert list(one.columns) == ["prediction"]
    assert list(one.compute().columns) == ["prediction"]


def mean_and_terms(chunk):
    return chunk.frame["y"].to_numpy(), chunk.frame[["x", "z"]].to_numpy()


def cubes(chunk):
    terms = chunk.frame[["x", "z"]].to_numpy()
    return np.stack([terms, -terms], axis=2)


@pytest.mark.parametrize("dtype", [float, int, bool, object, np.dtype("<U4")])
@pytest.mark.parametrize("columns", ["label", ["label"]])
def test_results_of_empty_partitions_have_the_right_dtype(frame, dtype, columns):
    rows = dd.from_pandas(frame, npartitions=4)
    rows = rows[rows["row"] >= 200]
    result = mapped(partial(labels, dtype), rows, columns, dtype)
    parts = [part.compute() for part in result.to_delayed()]
    assert len(parts[0]) == 0
    wanted = result._meta
    for part in parts:
        assert type(part) is type(wanted)
        assert np.all(part.dtypes == wanted.dtypes)
        assert part.index.dtype == wanted.index.dtype
    assert len(result.compute()) == N_ROWS - 200


def labels(dtype, chunk):
    assert len(chunk.frame)
    if np.dtype(dtype).kind in "OU":
        return np.asarray(chunk.frame["city"], dtype)
    return np.ones(len(chunk.frame), dtype)


def test_models_are_sent_once(frame, ddf, client):
    Heavy.pickled = 0
    result = mapped(HeavyModel(), ddf, "x").compute()
    assert np.array_equal(result, frame["x"])
    assert 1 <= Heavy.pickled <= 4  # not once for each of eleven partitions
