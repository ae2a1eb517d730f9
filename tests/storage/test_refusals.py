"""Inconsistent files are rejected in one line, with the file and the remedy."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import lanam
from lanam import LANAMRegressor
from lanam.persistence import ModelFileError
from lanam.storage import container, from_bytes, of_estimator, to_bytes
from lanam.storage.container import VERSION, Contents, pack, unpack
from tests.storage.cases import case
from tests.storage.hostile import put_together, taken_apart

GOLDEN = Path(__file__).parent / "golden"


class TestFiles:
    def load(self, tmp_path, data):
        path = tmp_path / "model.lanam"
        path.write_bytes(data)
        with pytest.raises(ModelFileError) as caught:
            lanam.load(path)
        words = str(caught.value)
        assert words.startswith(f"{path} ")
        assert "\n" not in words
        assert caught.value.__cause__ is None
        return words.removeprefix(f"{path} ")

    def golden(self):
        return (GOLDEN / f"regressor-{VERSION}.lanam").read_bytes()

    def test_nothing(self, tmp_path):
        assert self.load(tmp_path, b"").startswith("is empty: save the model again")

    def test_something_else(self, tmp_path):
        words = "is not a lanam model: such files are written by model.save(path)"
        assert self.load(tmp_path, b"\x80\x04K\x01.") == words

    def test_half_a_file(self, tmp_path):
        assert self.load(tmp_path, self.golden()[:5000]) == (
            "is damaged (it ends too early): save the model again, or copy the file again"
        )

    def test_a_flipped_bit(self, tmp_path):
        data = bytearray(self.golden())
        data[-100] ^= 1
        assert self.load(tmp_path, bytes(data)).startswith(
            "is damaged (its checksum does not match)"
        )

    def test_a_newer_one(self, tmp_path):
        header, arrays = taken_apart(self.golden())
        assert self.load(tmp_path, put_together(header, arrays, version=VERSION + 1)) == (
            f"was written by a newer lanam (format version {VERSION + 1}, and this one reads up to "
            f"{VERSION}): upgrade with `pip install --upgrade lanam`"
        )

    def test_an_unknown_version(self, tmp_path):
        header, arrays = taken_apart(self.golden())
        words = self.load(tmp_path, put_together(header, arrays, version=0))
        assert words.startswith("is damaged (there is no format version 0)")

    def test_the_first_version_knew_no_noise(self, tmp_path):
        header, arrays = taken_apart(self.golden())
        words = self.load(tmp_path, put_together(header, arrays, version=1))
        assert words.startswith("is damaged (the model)")

    def test_the_second_version_knew_gaussian_noise_only(self, tmp_path):
        header, arrays = taken_apart(self.golden())
        words = self.load(tmp_path, put_together(header, arrays, version=2))
        assert words.startswith("is damaged (the model)")

    @pytest.mark.parametrize("version", range(1, VERSION + 1))
    @pytest.mark.parametrize("content", [None, 1, "model", [], ["model"], {"model": ["noise"]}])
    def test_content_without_names(self, tmp_path, content, version):
        data = put_together({"content": content, "arrays": []}, version=version)
        words = self.load(tmp_path, data)
        assert words.startswith("is damaged (the model)")

    def test_an_unknown_argument(self, tmp_path):
        header, arrays = taken_apart(self.golden())
        header = json.loads(header)
        header["content"]["parameters"]["monotone"] = None
        words = self.load(tmp_path, put_together(header, arrays))
        assert words.startswith("has the argument 'monotone', which LANAMRegressor does not know")

    def test_a_missing_argument_has_its_default(self, tmp_path):
        header, arrays = taken_apart(self.golden())
        header = json.loads(header)
        del header["content"]["parameters"]["max_knots"]
        (tmp_path / "m.lanam").write_bytes(put_together(header, arrays))
        assert lanam.load(tmp_path / "m.lanam").max_knots == LANAMRegressor().max_knots

    def test_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.lanam: models are"):
            lanam.load(tmp_path / "none.lanam")

    def test_a_folder(self, tmp_path):
        with pytest.raises(IsADirectoryError, match="is a folder: pass the name of a file"):
            lanam.load(str(tmp_path))

    def test_an_endless_device(self):
        with pytest.raises(ModelFileError, match="/dev/zero is not a file"):
            lanam.load("/dev/zero")

    def test_a_file_that_is_too_large_is_not_read(self, tmp_path):
        with (tmp_path / "m.lanam").open("wb") as file:
            file.truncate(2**31 + 1)  # no bytes on the disk
        with pytest.raises(ModelFileError, match="is too large for a model"):
            lanam.load(tmp_path / "m.lanam")


def changed(name, change):
    """A model's file with its content and arrays changed."""
    contents = unpack(to_bytes(of_estimator(case(name)[0])))
    content, arrays = contents.content, dict(contents.arrays)
    change(content, arrays)
    return pack(Contents(content, arrays))


def setting(*path, to):
    """Sets a value of the content."""

    def change(content, arrays):
        *way, key = path
        for step in way:
            content = content[step]
        assert content[key] != to
        content[key] = to

    return change


def array(name, function):
    """Changes an array; a missing one is put in."""

    def change(content, arrays):
        arrays[name] = function(arrays[name].copy() if name in arrays else None)

    return change


def number(name, value, place=0):
    def function(values):
        values.flat[place] = value
        return values

    return array(name, function)


def without(name):
    return lambda content, arrays: arrays.pop(name)


def coupled(content, arrays):
    """A coupling that would fit, of a model of several classes, which has none."""
    n_entries, n_coordinates = len(arrays["term 2 share"]), len(arrays["root rows"])
    arrays["term 2 own_variance"] = np.ones(n_entries)
    arrays["term 2 coupling"] = np.ones((n_coordinates, n_entries))


def noise_of_its_own(content, arrays):
    content["model"]["noise"]["noise"] = {**content["model"]["noise"]}


def noise_of_counts(content, arrays):
    """What would fit, were it the model of a number."""
    contents = unpack(to_bytes(of_estimator(case("noisy")[0])))
    content["model"]["noise"] = contents.content["model"]["noise"]
    own = {name: array for name, array in contents.arrays.items() if name.startswith("noise ")}
    arrays.update(own)


TERM = ("model", "terms", 0)
NOISE = ("model", "noise")
SHAPE = {"weights": [0.5, 0.5], "means": [0.0, 0.0], "stds": [1.0, 1.0]}

REFUSED = {
    # kind of model, change, message
    "another estimator": ("block", setting("estimator", to="Pipeline"), "'estimator' of the content"),
    "a module": ("block", setting("estimator", to="os.system"), "'estimator' of the content"),
    "a classifier without classes": ("block", setting("estimator", to="LANAMClassifier"), "the likelihood"),
    "classes of a regressor": (
        "block",
        setting("classes", to={"dtype": "int64", "room": 0, "values": [0, 1]}),
        "how many classes",
    ),
    "no classes": ("two", setting("classes", to=None), "how many classes"),
    "too few classes": ("many", setting("classes", "values", to=["a", "b"]), "how many classes"),
    "a class twice": ("two", setting("classes", "values", to=["sick", "sick"]), "'values' of the classes"),
    "classes of a wrong type": ("two", setting("classes", "dtype", to="int64"), "'values' of the classes"),
    "classes of no type": ("two", setting("classes", "dtype", to="datetime64"), "'dtype' of the classes"),
    "classes with much room": ("two", setting("classes", "room", to=2**40), "'room' of the classes"),
    "classes with little room": ("two", setting("classes", "room", to=1), "'values' of the classes"),
    "a likelihood of classes": ("block", setting("model", "likelihood", to="bernoulli"), "the likelihood"),
    "a likelihood of several": ("block", setting("model", "likelihood", to="softmax"), "how many classes"),
    "no likelihood": ("block", setting("model", "likelihood", to="cauchy"), "'likelihood' of the model"),
    "two intercepts": ("block", setting("model", "intercept", to=[1.0, 2.0]), "how many classes"),
    "no intercept": ("block", setting("model", "intercept", to=[]), "how many classes"),
    "a huge intercept": ("block", setting("model", "intercept", to=[1e200]), "'intercept' of the model"),
    "a negative variance": ("block", setting("model", "noise_variance", to=-1.0), "'noise_variance'"),
    "no noise": ("block", setting("model", "noise_variance", to=0.0), "'noise_variance'"),
    "noise of counts": ("counts", noise_of_counts, "the noise"),
    "noise of noise": ("noisy", noise_of_its_own, "'noise' of the noise"),
    "noise of another kind": (
        "noisy",
        setting(*NOISE, "likelihood", to="gaussian"),
        "'likelihood' of the noise",
    ),
    "noise as a likelihood": (
        "block",
        setting("model", "likelihood", to="log-variance"),
        "'likelihood' of the model",
    ),
    "noise without its terms": ("noisy", setting(*NOISE, "terms", to=[]), "the shape of 'root"),
    "noise that is gone": ("noisy", setting(*NOISE, to=None), "belong to nothing"),
    "noise with more": ("noisy", array("noise more", lambda _: np.ones(3)), "belong to nothing"),
    "noise with missing values": (
        "noisy",
        array("noise gap_variance", lambda _: np.ones(3)),
        "'pairs or missing values' of the noise",
    ),
    "a shape of counts' noise": ("counts", setting("model", "noise_shape", to=SHAPE), "the shape of"),
    "a shape that is no shape": ("noisy", setting("model", "noise_shape", to=[1.0]), "the shape of"),
    "a shape of another size": (
        "noisy",
        setting("model", "noise_shape", to={**SHAPE, "stds": [2.0, 1.0]}),
        "'stds' of the shape",
    ),
    "a shape that is not centred": (
        "noisy",
        setting("model", "noise_shape", to={**SHAPE, "means": [0.5, 0.5]}),
        "'means' of the shape",
    ),
    "a shape of half the weight": (
        "noisy",
        setting("model", "noise_shape", to={**SHAPE, "weights": [0.25, 0.25]}),
        "'weights' of the shape",
    ),
    "a negative weight": (
        "noisy",
        setting("model", "noise_shape", to={**SHAPE, "weights": [1.5, -0.5]}),
        "'weights' of the shape",
    ),
    "a shape with a width of nothing": (
        "noisy",
        setting("model", "noise_shape", to={**SHAPE, "stds": [1.0, 0.0]}),
        "'stds' of the shape",
    ),
    "a shape with a component less": (
        "noisy",
        setting("model", "noise_shape", to={**SHAPE, "means": [0.0]}),
        "'weights' of the shape",
    ),
    "a shape of noise's noise": ("noisy", setting(*NOISE, "noise_shape", to=SHAPE), "'noise_shape' of"),
    "infinite noise": ("noisy", number("noise term 0 mean", np.inf), "a number in"),
    "too little noise": ("counts", setting("model", "noise_variance", to=0.5), "'noise_variance'"),
    "no terms": ("block", setting("model", "terms", to=[]), "shape of 'root digits'"),
    "terms that are no list": ("block", setting("model", "terms", to={}), "the list of terms"),
    "a term that is none": ("block", setting(*TERM, to=[]), "term 0"),
    "a column that is not there": ("block", setting(*TERM, "features", to=[3]), "'features' of term 0"),
    "a negative column": ("block", setting(*TERM, "features", to=[-1]), "'features' of term 0"),
    "a column of no number": ("block", setting(*TERM, "features", to=[True]), "'features' of term 0"),
    "two columns of one": ("block", setting(*TERM, "features", to=[0, 1]), "'features' of term 0"),
    "a pair of a column": ("block", setting("model", "terms", -1, "features", to=[1, 1]), "'features'"),
    "another kind": ("block", setting(*TERM, "kind", to="level"), "'entries' of term 0"),
    "no kind": ("block", setting(*TERM, "kind", to="neural"), "'kind' of term 0"),
    "no status": ("block", setting(*TERM, "status", to="asleep"), "'status' of term 0"),
    "switched off with a table": (
        "block",
        setting(*TERM, "status", to="switched off: evidence"),
        "the table of term 0",
    ),
    "active without entries": ("block", setting(*TERM, "entries", to=None), "'entries' of term 0"),
    "entries of no type": ("block", setting(*TERM, "entries", "type", to="tree"), "the entries of"),
    "a scale of zero": ("block", setting(*TERM, "entries", "scale", to=0.0), "'scale' of the entries"),
    "an empty inside": ("block", setting(*TERM, "entries", "inside", to=[3, 3]), "'inside'"),
    "an inside outside": ("block", setting(*TERM, "entries", "inside", to=[0, 9999]), "'inside'"),
    "missing of no kind": ("block", setting(*TERM, "entries", "missing", to="no"), "'missing'"),
    "missing that are": ("block", setting(*TERM, "entries", "missing", to=True), "the shape of 'term 0"),
    "an importance of text": ("block", setting(*TERM, "importance", to="1"), "'importance' of term 0"),
    "a network of no kind": (
        "block",
        setting(*TERM, "architecture", "activation", to="eval"),
        "'activation' of the network",
    ),
    "a network without layers": ("block", setting(*TERM, "architecture", "hidden_sizes", to=[]), "'hidden"),
    "a network without end": (
        "block",
        setting(*TERM, "architecture", "hidden_sizes", to=[2**40]),
        "'hidden_sizes' of the network",
    ),
    "a history that is none": ("block", setting("model", "history", to=[1]), "the history"),
    "rows below zero": ("block", setting("n_rows", to=-1), "'n_rows' of the content"),
    "other names": ("polars", setting("feature_names", to=["a", "b", "c"]), "'feature_names'"),
    "no columns": ("block", setting("schema", "columns", to=[]), "there are no columns"),
    "a column without a name": ("block", setting("schema", "columns", 0, "name", to=None), "'name' of"),
    "a range upside down": ("block", setting("schema", "columns", 0, "lowest", to=99.0), "'lowest' of"),
    "levels of numbers": ("block", setting("schema", "columns", 0, "levels", to=["a"]), "'levels' of"),
    "other levels": ("truth", setting("schema", "columns", 0, "levels", to=[True]), "the entries of"),
    "a level twice": ("truth", setting("schema", "columns", 0, "levels", to=[True, True]), "'levels'"),
    "mixed levels": ("truth", setting("schema", "columns", 0, "levels", to=[True, "a"]), "'levels'"),
    "a number of text": ("block", setting("model", "log_evidence", to="1"), "'log_evidence' of the model"),
    "statuses of no list": ("block", setting("model", "pair_statuses", to="ab"), "'pair_statuses' of"),
    "statuses of numbers": ("block", setting("model", "pair_statuses", to=[1, 2]), "of an interaction"),
    "two kinds at once": ("block", setting("parameters", "tol", to={"set": [], "a": 1}), "of a kind"),
    "a tuple of text": ("block", setting("parameters", "tol", to={"tuple": "ab"}), "should be a list"),
    "a float of text": ("block", setting("parameters", "tol", to={"float": "1.5"}), "a number"),
    "a pair of three": ("block", setting("parameters", "tol", to={"dict": [[1, 2, 3]]}), "a pair"),
    "edited terms of no name": ("edited", setting("edits", 0, "terms", to=[1]), "the terms of edit 0"),
    "an edit of nowhere": ("edited", setting("edits", 0, "where", to=[]), "where edit 0 is"),
    "an edit of no levels": ("edited", setting("edits", 0, "where", 0, "levels", to=[[]]), "'levels' of"),
    "a network of no scale": ("block", setting(*TERM, "architecture", "scales", to=[0.0]), "'scales'"),
    "entries of text": ("block", setting(*TERM, "entries", to="knots"), "the entries of term 0"),
    "three axes": (
        "block",
        setting("model", "terms", -1, "entries", "axes", to=[1, 2, 3]),
        "(the entries of term 3)",
    ),
    "a range of text": ("block", setting("schema", "columns", 0, "lowest", to="0"), "'lowest' of"),
    "a label of no kind": ("truth", setting("schema", "columns", 0, "levels", to=[None, True]), "a label"),
    "exposures of no counts": ("block", setting("exposed", to=True), "the exposure"),
    "deep metadata": ("block", setting("metadata", to={"a": []}), "the metadata"),
    "parameters that are none": ("block", setting("parameters", to=[]), "the parameters"),
    "a parameter of no kind": ("block", setting("parameters", "tol", to={"eval": ["1"]}), "of a kind"),
    "deep parameters": (
        "block",
        setting("parameters", "tol", to=json.loads("[" * 50 + "]" * 50)),
        "nested too deep",
    ),
    "an output of no kind": ("block", setting("output", to="spark"), "'output' of the content"),
    "an edit of no kind": ("edited", setting("edits", 0, "action", to="exec"), "'action' of edit 0"),
    "an edit of nothing": ("edited", setting("edits", 0, to={}), "edit 0"),
    "an edit of no day": ("edited", setting("edits", 0, "date", to="May"), "'date' of edit 0"),
    "an edit of no one": ("edited", setting("edits", 0, "author", to=1), "'author' of edit 0"),
    "edited by halves": ("edited", number("term 0 edited", 2), "what was edited of term 0"),
    "unsorted knots": ("block", array("term 0 points", lambda a: a[::-1]), "the order of 'term 0 points'"),
    "a single knot": ("block", array("term 0 points", lambda a: a[:1]), "the order of 'term 0 points'"),
    "fewer inputs": ("block", array("term 0 inputs", lambda a: a[1:]), "the shape of 'term 0 inputs'"),
    "fewer means": ("block", array("term 0 mean", lambda a: a[1:]), "the shape of 'term 0 mean'"),
    "means of classes": ("block", array("term 0 mean", lambda a: a[:, None]), "type of 'term 0 mean'"),
    "a mean that is none": ("block", number("term 0 mean", np.nan), "a number in 'term 0 mean'"),
    "a huge mean": ("block", number("term 0 mean", -1e151), "a number in 'term 0 mean'"),
    "an endless knot": ("block", number("term 0 points", np.inf, -1), "a number in 'term 0 points'"),
    "a negative share": ("block", number("term 0 share", -0.1), "the shares of term 0"),
    "a negative precision": ("block", number("term 0 precision", -0.1), "the precisions of term 0"),
    "a narrower table": (
        "block",
        array("term 0 table digits", lambda a: a[1:]),
        "the shape of 'term 0 table columns'",
    ),
    "a shorter table": ("block", array("term 0 table digits", lambda a: a[:, 1:]), "the shape of"),
    "a huge unit": ("block", number("term 0 table rows", 2000), "a number in 'term 0 table'"),
    "no table": ("block", without("term 0 table digits"), "it has no 'term 0 table digits'"),
    "no mean": ("block", without("term 0 mean"), "it has no 'term 0 mean'"),
    "whole means": ("block", array("term 0 mean", lambda a: a.astype("i4")), "type of 'term 0 mean'"),
    "a shorter root": ("block", array("root digits", lambda a: a[1:]), "the shape of 'root digits'"),
    "a root of a matrix": ("block", array("root digits", lambda a: a[None]), "the type of 'root digits'"),
    "an array too many": ("block", array("code", lambda _: np.zeros(1)), "belong to nothing"),
    "a coupling of a curve": (
        "block",
        array("term 0 own_variance", lambda _: np.ones(1)),
        "the coupling of term 0",
    ),
    "a coupling of classes": ("many", coupled, "(a coupling)"),
    "no coupling": ("wide", without("term 0 coupling digits"), "it has no 'term 0 coupling digits'"),
    "a negative own variance": ("wide", number("term 0 own_variance", -1.0), "the variances of term 0"),
    "contrasts of other classes": ("many", array("contrasts", lambda a: a[1:]), "shape of 'contrasts'"),
    "contrasts of two": ("two", array("contrasts", lambda _: np.ones((2, 1))), "belong to nothing"),
    "missing of other columns": ("gaussian", array("gap_variance", lambda a: a[1:]), "shape of 'gap_var"),
    "negative variance": ("gaussian", number("gap_variance", -1.0), "the variance of missing values"),
    "a code beyond": ("truth", number("term 0 entry_of", 4), "the entries of term 0"),
    "a code of missing ones": ("truth", number("term 0 entry_of", 2), "the entries of term 0"),
    "fewer codes": ("truth", array("term 0 entry_of", lambda a: a[1:]), "the entries of term 0"),
    "edges of levels": ("levels", array("term 1 edges", lambda _: np.ones(1)), "shape of 'term 1 edges'"),
    "fewer edges": ("bins", array("term 1 edges", lambda a: a[1:]), "the shape of 'term 1 edges'"),
    "pairs of no column": ("polars", number("pair features", 3), "columns of pairs"),
    "pairs of no status": ("polars", number("pair status", 99), "of an interaction"),
    "fewer scores": ("polars", array("pair score", lambda a: a[1:]), "the shape of 'pair score'"),
    "unsorted scores": (
        "calibrated",
        array("calibration scores", lambda a: a[::-1]),
        "the order of the calibration's scores",
    ),
    "no weight": ("calibrated", array("calibration weight", np.zeros_like), "the calibration's weights"),
    "less weight": ("calibrated", array("calibration weight", lambda a: a[1:]), "'calibration weight'"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_rejected(name):
    kind, change, words = REFUSED[name]
    with pytest.raises(ModelFileError, match="is damaged") as caught:
        from_bytes(changed(kind, change))
    assert words in str(caught.value)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", ["block", "wide", "many"])
def test_unchanged_files_load(kind):
    from_bytes(changed(kind, lambda content, arrays: None))


class TestMemory:
    """A file that is small because its arrays are zeros makes no more of itself than it may."""

    def peak(self, data):
        tracemalloc.start()
        try:
            from_bytes(data)
            outcome = "loads"
        except ModelFileError as error:
            outcome = str(error)
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return outcome, peak

    def zeros(self, width):
        """A model of which one term has this many coordinates, all without an effect."""
        contents = unpack((GOLDEN / f"regressor-{VERSION}.lanam").read_bytes())
        content, arrays = contents.content, dict(contents.arrays)
        for name in [name for name in arrays if name.startswith("term 0 table")]:
            del arrays[name]
        n_entries = len(arrays["term 0 share"])
        terms = content["model"]["terms"]
        tables = [arrays.get(f"term {k} table digits") for k in range(1, len(terms))]
        size = 1 + width + sum(0 if table is None else len(table) for table in tables)
        triangle = size * (size + 1) // 2
        matrices = {
            "term 0 table": (n_entries, width, (width, n_entries)),
            "root": (size, size, triangle),
        }
        for name, (n_rows, n_columns, shape) in matrices.items():
            arrays[f"{name} digits"] = np.zeros(shape, np.int32)
            arrays[f"{name} rows"] = np.zeros(n_rows, np.int16)
            arrays[f"{name} columns"] = np.zeros(n_columns, np.int16)
        entries, stored = zip(*(container._store(*item) for item in arrays.items()), strict=True)
        return put_together({"content": content, "arrays": list(entries)}, b"".join(stored))

    def test_a_matrix_of_zeros(self, monkeypatch):
        monkeypatch.setattr(container, "LEAST_ROOM", 1 << 23)
        accepted, refused = self.zeros(400), self.zeros(1500)
        assert max(len(accepted), len(refused)) < 200_000
        outcome, peak = self.peak(accepted)
        assert outcome == "loads"
        assert peak < 1 << 23
        outcome, peak = self.peak(refused)
        assert "its arrays are too large" in outcome
        assert peak < 1e6

    def test_more_pairs_than_columns_have(self):
        def more(content, arrays):
            for name in ("features", "score", "status"):
                arrays[f"pair {name}"] = np.repeat(arrays[f"pair {name}"], 2, axis=0)

        with pytest.raises(ModelFileError, match="how many pairs there are"):
            from_bytes(changed("gaussian", more))


def scaled(name, factor):
    return array(name, lambda old: old * factor)


def every(*changes):
    return lambda content, arrays: [change(content, arrays) for change in changes]


UNSOUND = {
    "means that sum to infinity": (
        "levels",
        every(
            array("term 0 mean", lambda old: np.zeros_like(old)),
            array("term 1 mean", lambda old: np.full_like(old, 9e149)),
            setting("model", "intercept", to=[9e149]),
        ),
        "the sum of its terms"),
    "an infinite variance": (
        "two",
        every(
            array("root rows", lambda old: old + np.int16(300)),
            array("term 0 table rows", lambda old: old + np.int16(300)),
        ),
        "the posterior covariance"),
    "shares above one": ("levels", scaled("term 0 share", 3.0), "the shares of term"),
    "contrasts that are none": ("calibrated_classes", scaled("contrasts", 2.0), "the contrasts"),
    "a dispersion beyond all counts": ("counts", setting("model", "noise_variance", to=1e200), "the noise"),
    "noise beyond all numbers": (
        "noisy", setting("model", "noise", "intercept", to=[1e4]), "the noise"),
    "no rows": ("levels", setting("n_rows", to=0), "'n_rows'"),
    "an importance that is no number": (
        "levels", setting("model", "terms", 0, "importance", to={"float": "nan"}), "'importance'"),
    "an infinite range": (
        "levels", setting("schema", "columns", 0, "highest", to={"float": "inf"}), "'lowest'"),
    "a range without its values": (
        "levels",
        every(
            setting("schema", "columns", 0, "highest", to=1e9),
            setting("schema", "columns", 0, "lowest", to=1e8),
        ),
        "the range of column"),
    "a history without evidence": ("levels", setting("model", "history", 0, to={}), "the history"),
    "a category of no entry": (
        "truth", array("term 1 entry_of", lambda old: np.zeros_like(old)), "the entries of term 1"),
    "scores beyond the noise": ("calibrated", scaled("calibration scores", 1e300), "calibration's scores"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSOUND)
def test_what_use_relies_on(name):
    source, change, words = UNSOUND[name]
    with pytest.raises(ModelFileError, match=words):
        from_bytes(changed(source, change))
