"""What is built on `solve`: models, layers, batches, prepared problems, predictions, benchmarks, plots and pages."""
