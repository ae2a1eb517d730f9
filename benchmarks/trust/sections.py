"""All sections by name, in the order of the report."""

from __future__ import annotations

from benchmarks.trust import bands, beyond, few, outliers, pairs, seeds, sets, warned, wide
from benchmarks.trust.section import Section

SECTIONS: dict[str, Section] = {
    module.SECTION.name: module.SECTION
    for module in (seeds, wide, bands, few, outliers, beyond, pairs, warned, sets)
}
