"""What people read: tables from evaluations and comparisons."""
