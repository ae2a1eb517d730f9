"""OAK-GP: a Gaussian process with the orthogonal additive kernel of Lu, Boukouvalas & Hensman (ICML 2022).

Ours, in torch, since the authors' code needs packages that no longer install. It follows their setup and
that of the paper: exact below 1,000 rows, 200 fixed inducing points by k-means from there on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.data.sets import Table, Task
from benchmarks.peers.interface import Fitted, Prediction, as_numbers, missing_module
from benchmarks.peers.normalising import Warp, normalising, standardising

if TYPE_CHECKING:
    from benchmarks.peers.orthogonal_kernel import Measure

FEW_VALUES = 10  # a column of so many distinct values or fewer has them for its density


class OrthogonalAdditiveGP:
    """``order`` 1 is the sum of functions of a column each, 2 has all pairs too.

    With more rows than ``first_rows``, hyperparameters are learned from so many at random, and then by
    ``polish_iter`` iterations from all.
    """

    def __init__(
        self,
        name: str = "oak",
        order: int = 1,
        n_inducing: int = 200,
        exact_below: int = 1000,
        first_rows: int = 5000,
        max_iter: int = 100,
        polish_iter: int = 20,
    ) -> None:
        self.name = name
        self.order = order
        self.n_inducing = n_inducing
        self.exact_below = exact_below
        self.first_rows = first_rows
        self.max_iter = max_iter
        self.polish_iter = polish_iter

    def missing(self) -> str | None:
        return missing_module("torch")

    def fit(self, X: Table, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        import torch

        from benchmarks.peers import orthogonal_process as process
        from benchmarks.peers.orthogonal_kernel import Rows

        if task not in ("regression", "classification"):
            raise ValueError(f"{self.name} does regression and two classes, not {task}.")
        torch.set_num_threads(threads)
        values = as_numbers(X)
        columns = [d for d in range(values.shape[1]) if np.ptp(values[:, d]) > 0]
        if not columns:
            raise ValueError("Every column is constant; OAK-GP needs one that is not.")
        warps = [warp_of(values[:, d]) for d in columns]
        place = {column: position for position, column in enumerate(columns)}

        def inputs(rows: Table) -> torch.Tensor:
            numbers = as_numbers(rows)
            pairs = zip(warps, columns, strict=True)
            return torch.tensor(np.stack([warp(numbers[:, d]) for warp, d in pairs], axis=1))

        training = inputs(X)
        measures = tuple(measure_of(training[:, d]) for d in range(len(columns)))
        exact = len(y) < self.exact_below
        inducing = training if exact else torch.tensor(centres(training, self.n_inducing, seed))
        shift, scale = 0.0, 1.0
        if task == "regression":
            shift, scale = float(np.mean(y)), float(np.std(y)) or 1.0
        target = torch.tensor((np.asarray(y, float) - shift) / scale)

        def learner(rows: Rows, target: torch.Tensor) -> process.Learner:
            if task == "classification":
                return process.Classification(rows, target, inducing, measures)
            if exact:
                return process.ExactRegression(rows, target, measures)
            return process.SparseRegression(rows, target, inducing, measures)

        noise = process.START_NOISE["exact" if exact else "sparse"]
        start = process.start_parameters(len(columns), self.order, noise)
        rows, iterations, limit = Rows.of(training), 0, self.max_iter
        if len(y) > self.first_rows:
            chosen = np.random.default_rng(seed).permutation(len(y))[: self.first_rows]
            some = learner(Rows.of(training[chosen]), target[chosen])
            search = process.maximise(some.evidence, start, len(chosen), limit)
            start, iterations, limit = search.parameters, search.iterations, self.polish_iter
        everything = learner(rows, target)
        search = process.maximise(everything.evidence, start, len(y), limit)
        posterior = everything.posterior(search.parameters)

        def predict(new: Table) -> Prediction:
            mean, variance = posterior.predict(inputs(new))
            if task == "classification":
                return Prediction(process.probability(mean, variance).numpy())
            std = torch.sqrt(variance + search.parameters.noise)
            return Prediction(shift + scale * mean.numpy(), scale * std.numpy())

        def effect(new: Table, column: int) -> tuple[np.ndarray, np.ndarray]:
            if column not in place:
                return np.zeros(len(new)), np.zeros(len(new))  # constant: it has nothing to say
            d = place[column]
            mean, variance = posterior.effect(inputs(new)[:, d], d, training[:, d])
            return scale * mean.numpy(), scale * torch.sqrt(variance).numpy()

        return Fitted(
            predict,
            predict_mean=lambda new: predict(new).mean,
            effect=effect,
            info={
                "log_evidence": search.objective,
                "n_iter": iterations + search.iterations,
                "converged": search.converged,
                "n_inducing": len(inducing),
                "first_rows": min(len(y), self.first_rows),
            },
        )


def warp_of(column: np.ndarray) -> Warp:
    """Towards a standard normal, or only standardised where there are few values."""
    few = len(np.unique(column)) <= FEW_VALUES
    return standardising(column) if few else normalising(column)


def measure_of(column: Any) -> Measure:
    """The empirical density of a column with few values, else N(0, 1)."""
    import torch

    from benchmarks.peers.orthogonal_kernel import Points

    values, counts = torch.unique(column, return_counts=True)
    return Points(values, counts.double() / len(column)) if len(values) <= FEW_VALUES else None


def centres(values: Any, number: int, seed: int) -> np.ndarray:
    """Inducing points: centres of k-means, of 10,000 rows at most."""
    from sklearn.cluster import KMeans

    rows = values.numpy()
    rows = np.random.default_rng(seed).permutation(rows)[:10_000]
    number = min(number, len(np.unique(rows, axis=0)))
    return KMeans(number, n_init=1, random_state=seed, max_iter=50).fit(rows).cluster_centers_
