"""``python -m cleanrank`` is the command line."""

from cleanrank.cli.main import main

if __name__ == "__main__":
    main()
