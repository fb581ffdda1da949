"""Gradients of ranking losses for boosted trees, compiled, over ragged queries."""
