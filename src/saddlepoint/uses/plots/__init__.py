"""Plots of benchmarks and games, by Matplotlib. The style is `ground/plot_style.py`."""
