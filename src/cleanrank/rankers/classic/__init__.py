"""Classic rankers: PRank, RankSVM, RankBoost, ListNet and AdaRank, on NumPy, SciPy and compiled loops."""
