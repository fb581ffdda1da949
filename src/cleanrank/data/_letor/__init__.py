"""The compiled reader of LETOR text."""
