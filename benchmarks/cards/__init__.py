"""The report card: how much of what label noise costs methods recover, and how well detectors find it."""
