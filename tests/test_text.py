"""Names from files may contain control characters, which are escaped when printed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMRegressor
from lanam.cli.console import Console, print_error
from lanam.text import one_line, shorten, visible

HOSTILE = "red \x1b[31m\nforged \x9b2J\u2028line"


@pytest.mark.parametrize("write", [visible, one_line, lambda text: shorten(text, 60)])
def test_control_characters_are_shown(write):
    written = write(HOSTILE)
    assert written.isprintable()
    assert r"\x1b[31m" in written
    assert r"\x9b2J" in written


def test_other_alphabets_stay_as_they_are():
    text = "é 中文 👩‍👩‍👧 a\xa0b"
    assert visible(text) == text


def test_lines_may_be_kept():
    assert visible("a\n\tb\x07", keep="\n\t") == "a\n\tb\\x07"


def test_the_summary_of_a_hostile_model():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({HOSTILE: rng.uniform(size=80), "b": rng.uniform(size=80)})
    model = LANAMRegressor(random_state=0).fit(X, X.sum(axis=1) + 0.01 * rng.normal(size=80))
    edited = model.edit_term("b", "clamp", high=0.5, reason=HOSTILE)
    lines = str(edited.summary()).split("\n")
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("forged") for line in lines)


def test_console_output(capsys):
    console = Console()
    console.print("one\ntwo \x1b[2J")
    console.note(HOSTILE)
    console.warn(HOSTILE)
    print_error(HOSTILE)
    printed = capsys.readouterr()
    assert printed.out == "one\ntwo \\x1b[2J\n"
    assert all(line.isprintable() for line in printed.err.split("\n"))
