"""The saddle problem: its oracle, its transforms, the examination of its assumptions, and files that describe it."""
