"""Label noise: matrices (profiles), drawing it (corrupt), measuring it (pair_noise), estimating it."""
