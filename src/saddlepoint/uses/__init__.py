"""What is built on `solve`: batches of problems, predictions, benchmarks, plots and pages."""
