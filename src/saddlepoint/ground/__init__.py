"""Errors, arrays of any library, and numerical tools: used by every floor above, and of no use by itself."""
