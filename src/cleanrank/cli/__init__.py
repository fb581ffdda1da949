"""The command line: parse, call, render, nothing else; ``main.py`` puts the commands together."""
