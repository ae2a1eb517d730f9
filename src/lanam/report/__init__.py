"""The report: one HTML file with everything a model has to say, and a page to play with it.

It reads explanations and their tables, nothing else. The file needs no network: the drawing library is in
it, and predictions are computed in the page (``assets/score.js``) from the model's own tables.
"""

from lanam.report.gather import gather, pick_rows
from lanam.report.material import Level, Material, Rows
from lanam.report.page import render, write_report

__all__ = ["Level", "Material", "Rows", "gather", "pick_rows", "render", "write_report"]
