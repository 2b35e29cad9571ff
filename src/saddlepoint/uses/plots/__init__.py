"""Plots of benchmarks, paths and supports, by Matplotlib. The style is `ground/plot_style.py`."""
