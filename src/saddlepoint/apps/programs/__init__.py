"""Linear and quadratic programs with a proven interval for the optimal value."""
