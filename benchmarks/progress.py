"""How far a run of many cells has come."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.environment import say


class Progress:
    """A bar in a terminal, lines elsewhere; gives a function to call with what was finished."""

    def __init__(self, total: int) -> None:
        self.total, self.count = total, 0
        self.bar = None

    def __enter__(self) -> Callable[[str], None]:
        try:
            from rich import progress
            from rich.console import Console
        except ImportError:
            return self._line
        console = Console(stderr=True)
        if not console.is_terminal:
            return self._line
        columns = [*progress.Progress.get_default_columns()[:-1], progress.TimeRemainingColumn()]
        self.bar = progress.Progress(*columns, console=console).__enter__()
        self.bar_task = self.bar.add_task("cells", total=self.total)
        return self._advance

    def __exit__(self, *details: object) -> None:
        if self.bar is not None:
            self.bar.__exit__(*details)

    def _line(self, text: str) -> None:
        self.count += 1
        say(f"[{self.count}/{self.total}] {text}")

    def _advance(self, text: str) -> None:
        self.bar.console.print(text, markup=False, highlight=False)
        self.bar.advance(self.bar_task)
