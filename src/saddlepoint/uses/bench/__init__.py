"""Measurements: Table 1 and Figure 1 of the paper, redrawn from runs."""
