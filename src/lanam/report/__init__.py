"""The report of a model: a self-contained HTML file with all explanations and a what-if page.

It is made of explanations and their tables only. The file needs no network: it embeds the plotting
library, and computes predictions from the model's tables (``assets/score.js``).
"""

from lanam.report.material import ExampleRows, Level, Material, gather, pick_rows
from lanam.report.page import render, write_report

__all__ = [
    "ExampleRows",
    "Level",
    "Material",
    "gather",
    "pick_rows",
    "render",
    "write_report",
]
