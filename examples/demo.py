"""Fit lanam to scikit-learn's diabetes data, check it on held-out patients, draw its curves.

Then let it find the one pair of columns that interacts in a formula where the answer is known.

Run it with `make demo`, or with `python examples/demo.py` where lanam, pandas and matplotlib are
installed. It writes lanam-demo.png and lanam-demo-pair.png into the current folder.
"""

import pandas as pd
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.model_selection import train_test_split

from lanam import LANAMRegressor
from lanam.plot import plot_interaction, plot_shapes

CURVES = "lanam-demo.png"
PAIR = "lanam-demo-pair.png"


def main() -> None:
    show_curves()
    show_a_pair()


def show_curves() -> None:
    # Ten measurements of 442 patients in their own units, and how far the disease has progressed a
    # year later. `scaled=False` keeps age in years and the body mass index in kg/m^2, so that the
    # curves can be read without a key.
    data = load_diabetes(scaled=False)
    X = pd.DataFrame(data.data, columns=data.feature_names)
    X_train, X_test, y_train, y_test = train_test_split(
        X, data.target, test_size=0.25, random_state=0
    )

    model = LANAMRegressor(random_state=0, verbose=1)
    model.fit(X_train, y_train)

    print()
    print(model.summary())

    interval = model.predict_interval(X_test, coverage=0.9)
    inside = (interval[:, 0] <= y_test) & (y_test <= interval[:, 1])
    print()
    print(f"On {len(y_test)} patients the model has not seen:")
    print(f"  R^2                           {model.score(X_test, y_test):.3f}")
    print(f"  mean log-likelihood           {model.log_likelihood(X_test, y_test):.3f}")
    print(f"  inside their 90% interval     {inside.mean():.1%}")

    axes = plot_shapes(model.explain_global())
    axes.flat[0].figure.savefig(CURVES, dpi=150, bbox_inches="tight")
    print()
    print(f"The curves are in {CURVES}. What to look at:")
    print("  - a panel is one term of the sum: what each value adds to the prediction;")
    print("  - the band is the model's own uncertainty: it widens where patients are few;")
    print("  - what the evidence did not need is switched off, as the summary says.")


def show_a_pair() -> None:
    # Friedman's first function: 10 sin(pi x0 x1) + 20 (x2 - 1/2)^2 + 10 x3 + 5 x4 and noise. Of the 45
    # pairs of its ten columns one interacts.
    X, y = make_friedman1(n_samples=500, noise=1.0, random_state=0)
    model = LANAMRegressor(random_state=0).fit(X, y)

    print()
    print("In 10 sin(pi x0 x1) + 20 (x2 - 1/2)^2 + 10 x3 + 5 x4 + noise, the best of all pairs are")
    print("\n".join(model.interaction_scores_.lines(3)))

    axes = plot_interaction(model.explain_global(), ("x0", "x1"))
    axes[0].figure.savefig(PAIR, dpi=120, bbox_inches="tight")
    print()
    print(f"The pair is in {PAIR}: what x0 and x1 add together, beyond their own curves.")


if __name__ == "__main__":
    main()
