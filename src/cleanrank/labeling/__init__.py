"""What people are asked about labels, what they answered, and what that changed."""
