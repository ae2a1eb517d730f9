"""Data sets: the paper's, raw tables, extracts of intensive care, and problems with a known truth."""
