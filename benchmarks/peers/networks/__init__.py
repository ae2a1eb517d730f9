"""Additive feature networks in torch: one small network a column, many members evaluated at once.

Parameters are a list of tensors whose first two axes are the member of the ensemble and the column, and
last the members' intercepts. A member is a plain network, a draw from a posterior, or a network with
units left out: all of them are predicted with, and explained, in the same way (``AdditiveEnsemble``).

``peer`` and ``settings`` do without torch; adapters import the other modules when they fit.
"""
