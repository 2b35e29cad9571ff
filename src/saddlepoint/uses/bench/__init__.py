"""Measured oracle calls for Table 1 and Figure 1 of the paper."""
