"""A detector, a cleaner and a ranker put together."""
