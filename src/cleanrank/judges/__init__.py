"""Judges (language models, people) against gold labels, and what systems are worth under their labels."""
