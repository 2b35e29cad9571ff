"""Pages for a browser: self-contained files that need no server and no network."""
