"""The web app: judging and reviewing labels in a browser."""
