"""Networks that rank, and the one loop that trains them."""
