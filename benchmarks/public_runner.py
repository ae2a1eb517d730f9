"""Runs the paper's public implementation; started by ``peers/public.py`` in its interpreter.

Reads requests as JSON lines, answers as JSON lines. Uses none of our modules. The settings are
the ones the package's documentation shows (1000 epochs, batches of 512, ten steps on the
evidence every ten epochs after the twentieth), for each of the paper's three learning
rates; the run with the best log marginal likelihood is kept, as in the paper.
"""

import json
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
import torch
from laplace_skorch.classifier import LaplaceAdditiveNetBinaryClassifier
from laplace_skorch.regressor import LaplaceAdditiveNetRegressor

LEARNING_RATES = (0.1, 0.01, 0.001)
SETTINGS: dict[str, Any] = {
    "max_epochs": 1000,
    "batch_size": 512,
    "hyper_optimizer__lr": 0.1,
    "hyper_steps": 10,
    "hyper_epoch_freq": 10,
    "hyper_epoch_burnin": 20,
    "verbose": 0,
}


def fit(X: np.ndarray, y: np.ndarray, task: str, seed: int) -> tuple[Any, dict[str, Any]]:
    """Fit once per learning rate; return the best model, and times and evidences."""
    classification = task == "classification"
    kind = LaplaceAdditiveNetBinaryClassifier if classification else LaplaceAdditiveNetRegressor
    frame = pd.DataFrame(X.astype(float))  # floats: integers would become categories there
    target = pd.Series(y.astype(int) if classification else y)
    best, best_evidence, seconds, failures = None, -np.inf, [], []
    cpu = time.process_time()
    for rate in LEARNING_RATES:
        torch.manual_seed(seed)
        start = time.perf_counter()
        try:
            model = kind(lr=rate, **SETTINGS).fit(frame, target)
            evidence = float(model.log_marginal_likelihood_)
        except Exception as error:  # one learning rate may diverge; the others still count
            failures.append(f"{rate}: {type(error).__name__}")
            evidence = -np.inf
        seconds.append(time.perf_counter() - start)
        if evidence > best_evidence:
            best, best_evidence = model, evidence
    if best is None:
        raise RuntimeError(f"every learning rate failed ({', '.join(failures)})")
    info = {
        "fit_seconds": sum(seconds),
        "fit_cpu_seconds": time.process_time() - cpu,
        "n_fits": len(seconds),
        "log_evidence": best_evidence,
        "failures": "; ".join(failures),
    }
    return best, info


def predict(model: Any, X: np.ndarray) -> dict[str, np.ndarray]:
    """Mean and standard deviation of y, or the probability of class one."""
    frame = pd.DataFrame(X.astype(float))
    if isinstance(model, LaplaceAdditiveNetBinaryClassifier):
        # its sampled predictive would do as well; the probit one has no Monte Carlo noise
        return {"mean": model.predict_proba(frame, use_probit=True)[:, 1]}
    mean, std = model.predict(frame, return_std=True)
    return {"mean": np.ravel(mean), "std": np.ravel(std)}


def main() -> None:
    """Answer requests until the input ends."""
    torch.set_num_threads(int(sys.argv[1]))
    model = None
    for line in sys.stdin:
        message = json.loads(line)
        with np.load(message["request"]) as stored:
            arrays = {key: stored[key] for key in stored.files}
        if message["command"] == "fit":
            model, answer = fit(arrays["X"], arrays["y"], message["task"], message["seed"])
        else:
            start = time.perf_counter()
            prediction = predict(model, arrays["X"])
            answer = {"predict_seconds": time.perf_counter() - start}
            np.savez(message["answer"], **prediction)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
