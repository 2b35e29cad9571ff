"""The saddle problem: counted oracles, transforms, checks of its assumptions, and files that describe problems."""
