"""Errors, checks of arguments, arrays of any library and small numerical tools, which every other folder uses."""
