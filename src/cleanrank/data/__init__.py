"""Ranking data in and out: files, frames, catalogue, synthetic sets, splits."""
