"""Which labels are doubted: detectors, and the one table that all of them return."""
