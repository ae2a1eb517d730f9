"""Prior, evidence, posterior and selection as functions of the hyperparameters; the default solver."""
