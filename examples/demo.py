"""Fit lanam to scikit-learn's diabetes data, check it on held-out patients, draw it, write a report.

Then let it find the one pair of columns that interacts in a formula where the answer is known.

Run it with `make demo`, or with `python examples/demo.py` where lanam with its extras plot and report,
and pandas, are installed. It writes lanam-demo.html, lanam-demo.png and lanam-demo-pair.png into the
current folder.
"""

import pandas as pd
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.model_selection import train_test_split

from lanam import LANAMRegressor, coverage_report
from lanam.plot import plot_interaction, plot_shapes

REPORT = "lanam-demo.html"
CURVES = "lanam-demo.png"
PAIR = "lanam-demo-pair.png"


def main() -> None:
    show_a_model()
    show_a_pair()


def show_a_model() -> None:
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

    print()
    print(f"On {len(y_test)} patients the model has not seen, R^2 {model.score(X_test, y_test):.3f}:")
    print(coverage_report(model, X_test, y_test))

    axes = plot_shapes(model.explain_global())
    axes.flat[0].figure.savefig(CURVES, dpi=150, bbox_inches="tight")
    print()
    print(f"The curves are in {CURVES}. What to look at:")
    print("  - a panel is one term of the sum: what each value adds to the prediction;")
    print("  - the band is the model's own uncertainty: it widens where patients are few;")
    print("  - what the evidence did not need is switched off, as the summary says.")

    title = "Diabetes: how far the disease has progressed after a year"
    path = model.report(REPORT, X_test, y_test, title=title)
    print()
    print(f"All of it, and a page on which to play with the model, is in {path}: open it in a browser.")


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
