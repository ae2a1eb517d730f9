"""FittedModel: a set of tables; scored, edited, and its predictive distributions."""
