"""Rankers: models that are fitted on judged rows and score rows."""
