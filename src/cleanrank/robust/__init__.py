"""Rankers that find and repair their own training labels."""
