"""Label noise: what it is (profiles) and how it gets into data (inject)."""
