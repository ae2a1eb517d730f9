"""The process: exit codes, help, signals, pipes, terminals, and the commands of the README."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
from sklearn.exceptions import ConvergenceWarning

from lanam import LANAMRegressor, __version__, load
from lanam.cli import errors, main, stopping
from lanam.cli.console import Console, coloured
from lanam.conformal import Calibration
from lanam.data.errors import ColumnRef, free_text, type_changed
from lanam.engines.dialects import Dialect
from lanam.errors import InputWarning, warn_user
from lanam.files import require_place
from lanam.inputs import read_weights
from lanam.parameters import read_memory, read_n_jobs
from lanam.storage.container import version_of

ROOT = Path(__file__).parent.parent.parent
FEW = Calibration(np.arange(4.0), np.ones(4))
COMMANDS = ("fit", "predict", "explain", "report", "adequacy", "export", "demo")


class TestHelp:
    def test_of_all(self, lanam):
        for arguments in ([], ["--help"], ["-h"]):
            done = lanam(*arguments)
            assert all(re.search(rf"^  {name} ", done.out, re.MULTILINE) for name in COMMANDS)

    @pytest.mark.parametrize("name", COMMANDS)
    def test_of_one(self, lanam, name):
        done = lanam(name, "--help")
        assert done.out.startswith(f"Usage: lanam {name}")
        # What a value is called, and not of which type it is.
        options = re.sub(
            r"<(regression|auto|json|sqlite)\|[a-z|]*>", "", done.out.split("Options:")[1]
        )
        assert not re.search(r"<[a-z]", options)
        if name != "demo":
            assert f"  lanam {name} " in done.out.split("Examples:")[1]

    def test_examples_in_help_texts_have_options_that_exist(self, lanam, capfd):
        """Each is parsed: the error is about the missing file, not about usage."""
        for name in COMMANDS[:-1]:
            examples = lanam(name, "--help").out.split("Examples:")[1].strip().splitlines()
            for line in examples:
                words = shlex.split(line.split("|")[1] if line.strip().startswith("cat") else line)
                assert main(words[1:]) == 1, line
                assert "there is no file" in capfd.readouterr().err

    def test_version(self, lanam):
        assert lanam("--version").out == f"lanam {__version__}\n"


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["fly"], "No such command 'fly'. (see lanam --help)"),
            (["fit", "--wings"], "(see lanam fit --help)"),
            (["predict", "m", "a.csv", "-o", "b.csv", "--interval", "90"], "use 0.9 for 90%"),
            (["fit", "a.csv", "-o", "m", "--test-share", "20"], "use 0.2 for 20%"),
            (["fit", "a.csv", "-o", "m", "--calibrate-share=-1"], "-1 is not between 0 and 0.9 "),
            (["explain", "m.lanam", "--coverage", "95"], "use 0.95 for 95%"),
            (["fit"], "Missing"),
            (["fit", "a.csv", "-o", "m.lanam", "--wings"], "No such option"),
            (["fit", "a.csv", "-o", "m.lanam", "--task", "flying"], "'flying'"),
            (["fit", "a.csv", "-o", "m.lanam", "--test-share", "2"], "--test-share"),
            (["predict", "m.lanam", "a.csv", "-o", "b.csv", "--interval", "1"], "--interval"),
            (["predict", "m.lanam", "a.csv", "-o", "b.csv", "--decimal", ";;"], "--decimal"),
            (
                ["predict", "m", "a.csv", "-o", "b.csv", "--decimal=,", "--delimiter=,"],
                "must differ",
            ),
            (["explain", "m.lanam", "--row", "1"], "--row and --data go together"),
            (["explain", "m.lanam", "--row", "0", "--data", "a.csv"], "--row"),
            (["explain", "m", "--row=1", "--data=a.csv", "--term=x"], "choose one"),
        ],
    )
    def test_one_line_and_code_2(self, lanam, tmp_path, monkeypatch, arguments, words):
        monkeypatch.chdir(tmp_path)
        done = lanam(*arguments, code=2)
        assert done.out == ""
        assert done.err.count("\n") == 1
        assert done.err.startswith("lanam")
        assert words in done.err


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (["explain", "none.lanam", "--json"], 1),
            (["explain", "--json", "none.lanam", "--coverage", "95"], 2),
            (["fly", "--json"], 2),
            (["predict", "m.lanam", "a.csv", "-o", "-", "--json", "--quiet"], 2),
        ],
    )
    def test_json_document(self, lanam, tmp_path, monkeypatch, arguments, code):
        monkeypatch.chdir(tmp_path)
        done = lanam(*arguments, code=code)
        assert done.document == {"error": done.err.split("error: ")[1].strip(), "exit_code": code}

    def test_without_json_there_is_no_document(self, lanam, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert lanam("explain", "none.lanam", code=1).out == ""

    def test_debug_raises(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(errors.CLIError, match="there is no file"):
            main(["explain", "none.lanam", "--debug"])
        monkeypatch.setenv("LANAM_DEBUG", "1")
        with pytest.raises(errors.CLIError, match="there is no file"):
            main(["explain", "none.lanam"])
        monkeypatch.setenv("LANAM_DEBUG", "0")
        assert main(["explain", "none.lanam"]) == 1

    def test_internal_errors_in_one_line(self, lanam, place, monkeypatch):
        def fall(*_):
            raise KeyError("x")

        monkeypatch.setattr("lanam.cli.models.metadata", fall)
        done = lanam("predict", "price.lanam", "rides.csv", "-o", "o.csv", code=1)
        assert done.err.count("\n") == 1
        assert "internal error, KeyError: 'x'; --debug shows the traceback" in done.err

    def test_extras_that_are_not_installed(self, monkeypatch, lanam, place):
        monkeypatch.setitem(sys.modules, "jinja2", None)
        done = lanam("report", "price.lanam", "-o", "r.html", code=1)
        assert "pip install lanam[report]" in done.err
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
        done = lanam("explain", "price.lanam", "-o", "s.png", code=1)
        assert "pip install lanam[plot]" in done.err

    def test_without_the_extra(self):
        code = (
            "import sys; sys.modules['typer'] = None; from lanam.cli import main; "
            "sys.exit(main(['demo', '--json']))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert done.stderr == (
            "lanam: error: the command line needs typer: install it with `pip install lanam[cli]`\n"
        )
        assert json.loads(done.stdout)["exit_code"] == 1

    def test_flags_in_messages_of_the_library(self):
        x = np.linspace(-1.0, 1.0, 60)[:, None]
        with pytest.warns(ConvergenceWarning) as caught:
            LANAMRegressor(max_iter=1, hidden_sizes=(4,), random_state=0).fit(
                x, np.sin(9 * x[:, 0])
            )
        assert str(caught[0].message) == (
            "The log evidence was still rising after max_iter=1 iterations; the best model so far is "
            "kept. Raise max_iter to train longer, or raise tol=0.05 to accept this as converged."
        )
        assert errors.in_flags(caught[0].message) == (
            "The log evidence was still rising after --max-iter 1 iterations; the best model so far is "
            "kept. Raise --max-iter."
        )
        place = ColumnRef("a", 0, "pyarrow")
        error = type_changed(place, "string", "numeric", 3.5)
        assert str(error).endswith(
            "now (for example 3.5): convert it, for example with `"
            'X = X.set_column(X.column_names.index("a"), "a", X["a"].cast(pa.string()))`'
        )
        assert errors.in_flags(error).endswith("now (for example 3.5): convert it in the file")
        message = errors.in_flags(free_text(place, 60, 60, "so long").located("in a.csv: "))
        assert message.startswith(
            "in a.csv: column 'a' holds free text: 60 distinct values in 60 rows"
        )
        assert (
            "Leave it out, for example with --drop 'a', or derive numeric features from it"
            in message
        )
        assert message.endswith("if its values are categories, name it in --categorical")

    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (lambda: read_memory("much"), "--memory much is not known: give a number of bytes"),
            (lambda: read_n_jobs(0), "--jobs 0 is not known: give a number of threads"),
            (lambda: require_place(__file__, overwrite=False), "use --force to replace it"),
            (lambda: read_weights([0.0, 0.0], 2), "--weight is zero for every row"),
            (lambda: version_of(b"other than ours"), "such files are written by lanam fit"),
            (lambda: FEW.threshold(0.95), "--interval 0.95 needs 19 held-out rows"),
            (lambda: Dialect(decimal=".."), "--decimal .. must be one character"),
            (
                lambda: LANAMRegressor().fit([[1.0], [2.0]], [1.0, 2.0], exposure=2.0),
                "--exposure is for counts, and --task regression is not: use --task counts, or leave",
            ),
        ],
    )
    def test_flags_in_place_of_arguments(self, error, message):
        with pytest.raises((ValueError, OSError)) as caught:
            error()
        assert message in errors.in_flags(caught.value)
        assert message not in str(caught.value)


class TestTerminals:
    def test_colours(self, monkeypatch):
        class Terminal:
            def isatty(self):
                return True

        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
        assert coloured("error:", "\033[31m", Terminal()) == "\033[31merror:\033[0m"
        monkeypatch.setenv("NO_COLOR", "1")
        assert coloured("error:", "\033[31m", Terminal()) == "error:"

    def test_nan_is_null_in_json(self, capsys):
        Console(json=True).document({"a": [float("nan"), np.float64(1.5)], "b": np.arange(2)})
        assert "".join(capsys.readouterr().out.split()) == '{"a":[null,1.5],"b":[0,1]}'

    def test_prompt_and_progress_on_a_terminal(self, tmp_path):
        """In a pseudo-terminal: a prompt for the target, and progress in one line."""
        pty = pytest.importorskip("pty")
        rng = np.random.default_rng(0)
        x = rng.normal(size=80)
        arrow_csv.write_csv(
            pa.table({"a": x, "b": x**2 + 0.1 * rng.normal(size=80)}), tmp_path / "d.csv"
        )
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "lanam", "fit", "d.csv", "-o", "m.lanam", "--interactions", "0"],
            cwd=tmp_path,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(theirs)
        os.write(ours, b"b\n")
        seen = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        assert process.wait() == 0
        os.close(ours)
        text = seen.decode()
        assert re.search(r"1  a\r?\n\s+2  b\r?\n", text)
        assert "Target column (name or number)" in text
        assert "\r[####" in text
        assert (tmp_path / "m.lanam").exists()


class TestSignals:
    def test_ctrl_c(self, home, tmp_path):
        """During a prediction: the existing file is kept, and no part of the new one."""
        out = tmp_path / "out.csv"
        out.write_text("precious")
        command = [sys.executable, "-m", "lanam", "predict", home / "price.lanam", "-", "-o", out]
        with subprocess.Popen(
            [*command, "--force", "--block-size", "4096"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            process.stdin.write((home / "rides.csv").read_bytes())
            process.stdin.flush()
            deadline = time.monotonic() + 60
            while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
                time.sleep(0.02)  # until there is a part of a file
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)  # though standard input is still open
            message = process.stderr.read().decode()
        assert process.returncode == 130
        assert message == "lanam predict: error: interrupted; no incomplete files were left\n"
        assert out.read_text() == "precious"
        assert list(tmp_path.iterdir()) == [out]

    def test_ctrl_c_during_imports(self):
        """Before any command runs: the signal comes while typer is imported."""
        code = (
            "import os, signal, sys\n"
            "class Finder:\n"
            "    def find_spec(self, name, *_):\n"
            "        if name == 'typer': os.kill(os.getpid(), signal.SIGINT)\n"
            "sys.meta_path.insert(0, Finder())\n"
            "from lanam.cli import main\n"
            "sys.exit(main(['demo', '--json']))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert done.returncode == 130
        assert done.stderr == "lanam: error: interrupted; no incomplete files were left\n"
        assert json.loads(done.stdout)["exit_code"] == 130

    def test_an_interrupt_that_was_replaced_by_another_error(self):
        """As numpy does, which reports any failure of its import as an ImportError."""

        def run():
            with stopping.stoppable():
                try:
                    os.kill(os.getpid(), signal.SIGTERM)
                    time.sleep(5)
                except errors.Interrupted:
                    raise ImportError("numpy") from None

        with pytest.raises(errors.Interrupted) as caught:
            run()
        assert caught.value.exit_code == 143

    def test_an_interrupt_that_was_lost_ends_the_input(self, tmp_path):
        """An error, since the end of the file would make the table look complete."""
        (tmp_path / "a.csv").write_text("a\n1\n")

        def run():
            with open(tmp_path / "a.csv", "rb") as file, stopping.stoppable():
                table = stopping.InterruptibleFile(file)
                assert table.read(2) == b"a\n"
                with contextlib.suppress(errors.Interrupted):
                    os.kill(os.getpid(), signal.SIGINT)
                    time.sleep(5)
                table.read(2)

        with pytest.raises(errors.Interrupted):
            run()

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_an_interrupted_fit_is_not_saved(self, lanam, place, monkeypatch, number, code):
        from lanam.core.fit import fitting

        real = fitting.fit

        def fit(tables, likelihood, options, *more, **keywords):
            def stop(_):
                os.kill(os.getpid(), number)

            return real(tables, likelihood, replace(options, on_iteration=stop), *more, **keywords)

        monkeypatch.setattr(fitting, "fit", fit)
        before = signal.getsignal(number)
        done = lanam(
            *("fit", "rides.csv", "-t", "price", "--drop", "id,events,ill,colour,hours", "-q"),
            *("-o", "m.lanam"),
            code=code,
        )
        assert "interrupted" in done.err
        assert not Path("m.lanam").exists()
        assert signal.getsignal(number) == before

    def test_a_closed_output_pipe(self, home):
        body = (home / "rides.csv").read_bytes().split(b"\n", 1)
        long = home / "long.csv"
        long.write_bytes(body[0] + b"\n" + body[1] * 200)
        command = (
            f"{shlex.quote(sys.executable)} -m lanam predict price.lanam long.csv -o - | head -n 2"
        )
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"],
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )
        long.unlink()
        assert done.stdout.splitlines()[0] == "prediction"
        assert done.stderr == ""
        assert done.returncode == 141


@pytest.mark.skipif(sys.platform == "win32", reason="shells differ")
class TestClosedStreams:
    """As shells close them (``>&-``), or as their other end is closed."""

    def shell(self, home, tmp_path, command, code):
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"],
            cwd=home,
            env={**os.environ, "LANAM": f"{sys.executable} -m lanam", "OUT": str(tmp_path / "out")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr
        return done

    @pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
    def test_results_in_files_are_complete(self, home, tmp_path, closed):
        command = f"$LANAM predict price.lanam rides.csv -o $OUT.csv {closed}"
        done = self.shell(home, tmp_path, command, 0)
        assert done.stdout == ""
        assert len((tmp_path / "out.csv").read_text().splitlines()) == 301

    def test_a_fit(self, home, tmp_path):
        quick = "-t price --drop id,events,ill,colour,hours --interactions 0"
        command = f"$LANAM fit rides.csv {quick} -o $OUT.lanam <&- >&- 2>&-"
        self.shell(home, tmp_path, command, 0)
        assert load(tmp_path / "out.lanam").n_features_in_ == 5

    @pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full"])
    def test_remarks_are_lost_and_not_mixed_with_results(self, home, tmp_path, closed):
        if "/dev/full" in closed and not os.path.exists("/dev/full"):
            pytest.skip("only Linux has a full device")
        command = f"$LANAM predict price.lanam rides.csv -o - {closed}"
        lines = self.shell(home, tmp_path, command, 0).stdout.splitlines()
        assert len(lines) == 301
        assert lines[0] == "prediction"
        assert all(map(float, lines[1:]))
        self.shell(home, tmp_path, f"$LANAM explain none.lanam {closed}", 1)

    def test_a_fit_goes_on_without_its_reader(self, home, tmp_path):
        """Its progress goes to a pipe whose other end is closed."""
        quick = "-t price --drop id,events,ill,colour,hours --interactions 0"
        command = f"$LANAM fit rides.csv {quick} -o $OUT.lanam 2> >(exec <&-; sleep 0.1)"
        assert "fitted to 240 rows" in self.shell(home, tmp_path, command, 0).stdout
        assert (tmp_path / "out.lanam").exists()

    @pytest.mark.parametrize(
        ("command", "option"),
        [
            ("predict price.lanam rides.csv -o -", "-o -"),
            ("export price.lanam --to sql -o -", "-o -"),
            ("explain price.lanam --json", "--json"),
        ],
    )
    def test_results_that_would_be_lost(self, home, tmp_path, command, option):
        done = self.shell(home, tmp_path, f"$LANAM {command} >&-", 2)
        assert done.stderr.endswith(
            f"error: {option} writes to standard output, which is closed: redirect it, for example "
            "with > FILE\n"
        )
        assert done.stderr.count("\n") == 1

    def test_a_table_from_a_closed_stream(self, home, tmp_path):
        done = self.shell(home, tmp_path, "$LANAM predict price.lanam - -o $OUT.csv <&-", 2)
        assert "standard input, which is closed: pipe a file in" in done.stderr

    def test_a_closed_pipe(self, home, tmp_path):
        done = self.shell(home, tmp_path, "$LANAM explain price.lanam --json | true", 141)
        assert done.stderr == ""


def commands_of(path):
    """The lines of the first shell block of a page that has commands of ours."""
    return re.search(r"```sh\n(lanam .*?)```", path.read_text(), re.DOTALL)[1].splitlines()


def test_commands_of_the_readme_have_options_that_exist(capfd, tmp_path, monkeypatch):
    """Each is parsed: the error is about the missing file, not about usage."""
    monkeypatch.chdir(tmp_path)
    lines = commands_of(ROOT / "README.md")
    assert lines
    for line in lines:
        assert main(shlex.split(line, comments=True)[1:]) == 1, line
        assert "there is no file" in capfd.readouterr().err


@pytest.mark.usefixtures("small_demo")
def test_commands_of_the_documentation_work_in_an_empty_folder(lanam, tmp_path, monkeypatch):
    """Line by line as they stand; one with the installed script, the others in this process."""
    lines = commands_of(ROOT / "docs" / "cli.md")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for line in lines:
        name, *arguments = shlex.split(line, comments=True)
        assert name == "lanam"
        lanam(*arguments)
    written = {path.name for path in tmp_path.iterdir()}
    wanted = set(re.findall(r"-o (\S+)", "\n".join(lines))) - {"-"}
    assert wanted
    assert wanted <= written
    assert {"lanam-demo.html", "lanam-demo.csv", "lanam-demo.png", "lanam-demo-pair.png"} <= written
    assert {line.split()[1] for line in lines} == set(COMMANDS)
    script = Path(sys.executable).with_name("lanam")
    assert script.exists()
    (pasted,) = (line for line in lines if "explain" in line and "-o" not in line)
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{pasted}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{script.parent}:{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    name, *arguments = shlex.split(pasted, comments=True)
    assert done.stdout == lanam(*arguments).out


@pytest.mark.filterwarnings("default")
def test_warnings_have_no_place_in_the_code(lanam, place, monkeypatch):
    summary = LANAMRegressor.summary

    def warned(self):
        warn_user(InputWarning("a remark on {sample_weight}"))
        return summary(self)

    monkeypatch.setattr(LANAMRegressor, "summary", warned)
    done = lanam("explain", "price.lanam")
    assert done.err == "warning: a remark on --weight\n"
