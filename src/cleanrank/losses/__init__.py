"""Losses: what rankers minimise; for trees, compiled gradients of ragged queries."""
