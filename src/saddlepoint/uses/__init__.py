"""Uses of `solve`: batches of problems, predictions of calls, benchmarks, plots and HTML pages."""
