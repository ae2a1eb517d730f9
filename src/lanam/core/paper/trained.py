"""Terms as functions of trained parameters: networks, and effects without one.

A term's parameters are those of its network and, after them, the effects of its other entries: of missing
values, of categories. Every output has such parameters; the prior precisions are common to all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lanam.core.arrays import Array, Rng, sum_by
from lanam.core.terms import networks
from lanam.core.terms.term import LevelTerm, MixedTerm, SmoothTerm, Term


def n_effects(term: Term) -> int:
    """The number of entries with an effect of their own; the first ones are the network's."""
    if isinstance(term, LevelTerm):
        return len(term.entries)
    return int(term.has_missing) if isinstance(term, SmoothTerm) else 0


def n_parameters(term: Term) -> int:
    """The number of parameters of one output."""
    return len(term.group_index)


def n_groups(term: Term) -> int:
    """The number of prior precisions."""
    return int(term.group_index.max()) + 1


def initialise(term: Term, rng: Rng) -> Array:
    """Parameters of one output before training: a random network, as torch's linear layers; no effects."""
    effects = np.zeros(n_effects(term))
    if isinstance(term, LevelTerm):
        return effects
    return np.concatenate([networks.initialise(_network_of(term).architecture, rng), effects])


def function(term: Term, parameters: Array) -> Array:
    """Values at the entries of one output's function."""
    if isinstance(term, LevelTerm):
        return parameters
    architecture = _network_of(term).architecture
    n_network = architecture.n_parameters
    values = networks.forward(architecture, parameters[:n_network], network_inputs(term))
    return np.concatenate([values, parameters[n_network:]])


def functions(term: Term, parameters: Array) -> Array:
    """Values (B,) at the entries, of several outputs (B, K), by parameters (K, P)."""
    values = np.column_stack([function(term, of_output) for of_output in parameters])
    return values[:, 0] if len(parameters) == 1 else values


def network_inputs(term: Term) -> Array:
    """The network's inputs at its entries, (0, 0) without one."""
    if isinstance(term, LevelTerm):
        return np.empty((0, 0))
    return _network_of(term).entries.network_inputs


def _network_of(term: Term) -> SmoothTerm | MixedTerm:
    """A term with a network: what is known of columns is refused before (``lanam.knowledge``)."""
    assert isinstance(term, SmoothTerm | MixedTerm), "no network to train"
    return term


def sums_of_squares(term: Term, parameters: Array) -> Array:
    """The sum of the squared parameters of every group, of all outputs."""
    per_parameter = np.square(parameters.reshape(-1, n_parameters(term))).sum(axis=0)
    return sum_by(term.group_index, per_parameter, n_groups(term))


def per_term(terms: Sequence[Term], of_groups: Array) -> list[Array]:
    """Values of all groups, one vector per term."""
    return np.split(of_groups, np.cumsum([n_groups(term) for term in terms])[:-1])
