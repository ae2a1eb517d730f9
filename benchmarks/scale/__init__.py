"""Rows beyond memory and beyond one machine: how long, how much memory, and is it the same?

``python -m benchmarks.scale`` makes the rows up, measures, and prints the page of what has been measured.
"""
