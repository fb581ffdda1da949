"""Label noise: what it is (profiles), how it gets into data (inject, clicks), what it does (pnoise)."""
