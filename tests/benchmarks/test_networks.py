"""Additive networks in torch: the fast ExU unit against a slow one, and every peer on a small problem."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the networks of other inference are torch's")
pd = pytest.importorskip("pandas", reason="the benchmark's data come in pandas frames")

from benchmarks.peers import all_peers  # noqa: E402
from benchmarks.peers.deep_ensemble import DeepEnsemble  # noqa: E402
from benchmarks.peers.mc_dropout import DropoutSampling  # noqa: E402
from benchmarks.peers.mean_field import MeanField  # noqa: E402
from benchmarks.peers.nam import NeuralAdditive  # noqa: E402
from benchmarks.peers.networks.ensembles import without_units  # noqa: E402
from benchmarks.peers.networks.exu import ExuNetworks  # noqa: E402
from benchmarks.peers.networks.masks import Masks  # noqa: E402
from benchmarks.peers.networks.outputs import contributions  # noqa: E402
from benchmarks.peers.networks.parameters import initial_parameters  # noqa: E402
from benchmarks.peers.networks.settings import Architecture, Budget, Training  # noqa: E402
from benchmarks.peers.networks.training import train  # noqa: E402

TRAINING = Training(Budget(updates=120, patience=60))
BRIEF = Training(Budget(updates=6))
PEERS = {
    "nam": NeuralAdditive(hidden=(128,), members=2, training=TRAINING),
    "nam-relu-deep": NeuralAdditive(
        "nam-relu-deep", (16, 16, 8), "relu", members=2, training=TRAINING
    ),
    "nam-relu": NeuralAdditive("nam-relu", (16,), "relu", members=2, training=TRAINING),
    "nam-gelu": NeuralAdditive("nam-gelu", (16,), "gelu", members=2, training=TRAINING),
    "deep-ensemble": DeepEnsemble(members=3, training=TRAINING),
    "mean-field": MeanField(prior_stds=(0.1, 0.3), draws=20, updates=200, rate=0.03),
    "mc-dropout": DropoutSampling(passes=20, training=TRAINING),
}
every_peer = pytest.mark.parametrize("name", PEERS)


def problem(task, n=200):
    """Two columns that matter, one that is constant."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(10, 12, n), rng.standard_normal(n) * 100, np.ones(n)])
    signal = 3 * np.sin(3 * X[:, 0]) + 0.02 * X[:, 1]
    if task == "classification":
        return X, (rng.random(n) < 1 / (1 + np.exp(-signal))).astype(int)
    return X, 50 + signal + 0.3 * rng.standard_normal(n)


@cache
def fit(name, task):
    """One fit of every peer and task, for all tests that look at it."""
    # a mean field believes in nothing that 200 rows of two classes say
    few = name != "mean-field" or task == "regression"
    X, y = problem(task, 200 if few else 2000)
    return X, y, PEERS[name].fit(X, y, task, seed=0, threads=1)


def brief(peer):
    """The same peer, trained for a few steps only."""
    if isinstance(peer, MeanField):
        return replace(peer, updates=BRIEF.budget.updates)
    return replace(peer, training=BRIEF)


def slow_exu(x, w, b, v, mask, keep):
    """One unit at a time, one row at a time."""
    members, columns, rows = x.shape
    out = np.zeros((members, columns, rows))
    for m in range(members):
        for d in range(columns):
            for n in range(rows):
                for j in range(w.shape[-1]):
                    unit = np.exp(w[m, d, j]) * (x[m, d, n] - b[m, d, j])
                    out[m, d, n] += v[m, d, j] * min(max(unit, 0), 1) * mask[m, d, n, j] / keep
    return out


class FixedMasks:
    """Masks that the slow version can be given too; a start is the number of the network."""

    rate = 0.25

    def __init__(self, mask):
        self.mask = mask

    def starts(self, count, length):
        return list(range(count))

    def at(self, start, shape):
        return self.mask.flatten(0, 1)[start]


def exu_case():
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (2, 3, 5))
    w, b, v = (rng.standard_normal((2, 3, 4)) for _ in range(3))
    mask = (rng.random((2, 3, 5, 4)) < 0.75).astype(np.uint8)
    return x, w, b, v, mask


@pytest.mark.parametrize("dropped", [False, True])
def test_exu_is_the_sum_over_units_written_out(dropped):
    x, w, b, v, mask = exu_case()
    masks, keep = (FixedMasks(torch.from_numpy(mask)), 0.75) if dropped else (None, 1.0)
    if not dropped:
        mask = np.ones_like(mask)
    tensors = [torch.tensor(a, dtype=torch.float32) for a in (x, w, b, v)]
    fast = ExuNetworks.apply(*tensors, masks)
    np.testing.assert_allclose(fast, slow_exu(x, w, b, v, mask, keep), rtol=1e-5, atol=1e-6)


def test_the_gradient_of_exu_is_that_of_autograd():
    x, w, b, v, mask = (torch.tensor(a) for a in exu_case())
    x, w, b, v = (t.float().requires_grad_(k > 0) for k, t in enumerate((x, w, b, v)))
    rows = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    (ExuNetworks.apply(x, w, b, v, FixedMasks(mask)) * rows).sum().backward()
    fast = [p.grad.clone() for p in (w, b, v)]
    for p in (w, b, v):
        p.grad = None
    units = (w.exp()[:, :, None] * (x[..., None] - b[:, :, None])).clamp(0, 1) * mask / 0.75
    ((units * v[:, :, None]).sum(-1) * rows).sum().backward()
    for mine, p in zip(fast, (w, b, v), strict=True):
        torch.testing.assert_close(mine, p.grad, rtol=1e-4, atol=1e-5)


def test_exu_starts_as_its_authors_say():
    generator = torch.Generator().manual_seed(0)
    w, b, _, intercept = initial_parameters(Architecture((1024,), "exu"), 2, 3, generator)
    assert w.shape == (2, 3, 1024)
    assert w.mean() == pytest.approx(4, abs=0.05)
    assert w.min() >= 3
    assert w.max() <= 5
    assert b.mean() == pytest.approx(0, abs=0.05)
    assert intercept.tolist() == [0, 0]


def test_masks_drop_the_share_they_should_and_differ():
    masks = Masks(0.2, np.random.default_rng(0))
    one, two = masks.draw((300, 300)), masks.draw((300, 300))
    assert one.float().mean() == pytest.approx(0.8, abs=0.01)
    assert not torch.equal(one, two)


def test_leaving_units_out_keeps_the_mean_function():
    architecture = Architecture((8,), "gelu")
    parameters = initial_parameters(architecture, 1, 2, torch.Generator().manual_seed(0))
    x = torch.linspace(-2, 2, 7).expand(1, 2, 7)
    passes = without_units(parameters, 0.2, 4000, seed=0)
    drawn = contributions(passes, x.expand(4000, 2, 7), architecture)
    whole = contributions(parameters, x, architecture)[0]
    assert drawn.std(0).min() > 0.01
    torch.testing.assert_close(drawn.mean(0), whole, rtol=0.0, atol=0.05)


def test_the_best_of_every_member_is_kept_and_patience_ends_the_rest():
    """Loss drives p down by about a tenth a step; scores are best at 1 for one member, 2 for the other."""
    goal = torch.tensor([1.0, 2.0])
    trained = train(
        [torch.full((2,), 3.0)],
        lambda p, x, y: p[0],
        lambda p: (p[0] - goal).abs(),
        torch.zeros(8, 1),
        torch.zeros(8),
        torch.tensor([0.1, 0.1]),
        Budget(updates=1000, patience=20, decay=1.0),
        torch.Generator().manual_seed(0),
    )
    torch.testing.assert_close(trained.parameters[0], goal, rtol=0.0, atol=0.01)
    assert trained.stopped_early
    assert trained.updates == 40  # the first member's best step is 20


def test_the_peers_are_registered_and_torch_is_there():
    peers = all_peers()
    for name in PEERS:
        assert peers[name].name == name
        assert peers[name].missing() is None


@every_peer
def test_regression_beats_the_mean_and_effects_add_up(name):
    X, y, fitted = fit(name, "regression")
    prediction = fitted.predict(X)
    assert np.sqrt(np.mean((prediction.mean - y) ** 2)) < 0.6 * y.std()
    assert (prediction.std > 0.1).all()
    assert fitted.info["updates"] > 0
    means, stds = zip(*(fitted.effect(X, column) for column in range(3)), strict=True)
    for mean in means:
        assert mean.mean() == pytest.approx(0, abs=1e-6)
    total = np.sum(means, axis=0)
    np.testing.assert_allclose(prediction.mean - prediction.mean.mean(), total, atol=1e-4)
    assert stds[0].max() > 0
    assert np.ptp(means[2]) == pytest.approx(0, abs=1e-6)


@every_peer
def test_classification_gives_probabilities_that_know_something(name):
    X, y, fitted = fit(name, "classification")
    probability = fitted.predict(X).mean
    assert ((probability > 0) & (probability < 1)).all()
    share = y.mean()
    loss = -np.mean(np.log(np.where(y == 1, probability, 1 - probability)))
    assert loss < -share * np.log(share) - (1 - share) * np.log(1 - share) - 0.05
    mean, std = fitted.effect(X, 0)
    assert mean.mean() == pytest.approx(0, abs=1e-6)
    assert std.max() > 0


@every_peer
def test_the_seed_decides_and_the_global_generator_is_left_alone(name):
    X, y = problem("regression")
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, same, other = (
        brief(PEERS[name]).fit(X, y, "regression", seed, 1).predict(X) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one.mean, same.mean)
    np.testing.assert_array_equal(one.std, same.std)
    assert np.abs(one.mean - other.mean).max() > 0
    assert torch.equal(before, torch.get_rng_state())


def test_nam_trains_less_in_a_wide_table():
    peer = NeuralAdditive(hidden=(4,), activation="relu", members=1, training=BRIEF)
    X, y = np.random.default_rng(0).standard_normal((30, 80)), np.arange(30.0)
    assert peer.fit(X[:, :40], y, "regression", 0, 1).info["updates"] == 6
    assert peer.fit(X, y, "regression", 0, 1).info["updates"] == 3


@every_peer
def test_blank_cells_are_an_error_that_names_the_column(name):
    X, y = problem("regression")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.loc[3, "b"] = np.nan
    with pytest.raises(ValueError, match="in column b; fill"):
        PEERS[name].fit(frame, y, "regression", seed=0, threads=1)


@every_peer
def test_other_tasks_are_refused(name):
    with pytest.raises(ValueError, match="regression and classification, not counts"):
        PEERS[name].fit(*problem("regression"), "counts", seed=0, threads=1)
