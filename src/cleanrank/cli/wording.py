"""Messages of the library in the words of the command line: ``rate=0.2`` becomes ``--rate 0.2``."""

import re
from collections.abc import Mapping

# Arguments whose option has another name.
RENAMED = {
    "n_estimators": "trees",
    "num_leaves": "leaves",
    "min_child_samples": "min-docs",
    "implementation": "objective",
    "early_stopping_rounds": "stop-after",
    "random_state": "seed",
    "n_jobs": "jobs",
    "mapping": "map",
}
# Columns of files, which messages name as they are.
COLUMN_NAMES = ("doc_id",)
# What only Python has: remedies to leave out, and a limit to put into words.
IN_PYTHON = (
    (re.compile(r",? or pass an array, which is read by the place of its columns"), ""),
    (re.compile(r",? or use model='family'"), ""),
    (re.compile(r"RecursionError\((?:'[^']*'|\"[^\"]*\")\)"), "it is nested too deeply"),
)
MAPPING = re.compile(r"mapping=\{([^}]*)\}")
# Not within a quoted value, a measure (err:max_grade=4), or an --option that is named already.
VALUE = r"('[^']*'|\{[^}]*\}|\[[^\]]*\]|-?[\w.]*\w|)"
ARGUMENT = re.compile(rf"(?<![\w'\":=.-])(?<!--option )([a-z][a-z_]+)={VALUE}(?![\w=])")

# A quoted value, which stays; or the bare name of an argument ("Raise min_doubt."), and no part of a path.
BARE = re.compile(r"(?<!\w)'[^']*'|(?<![\w'\":=./-])([a-z]+(?:_[a-z]+)+)(?![\w/=('\"]|\.\w)")


def in_options(message: str, options: Mapping[str, bool]) -> str:
    """A message with arguments of Python written as options.

    Args:
        message: what the library says.
        options: the options of the command that ran (``min-docs``) and whether each takes a value; with
            ``option`` among them, settings without an option of their own become ``--option NAME=VALUE``.

    >>> options = {"label": True, "rate": True, "option": True}
    >>> in_options("there is no column 'x' (label=). Say rate=0.2 or folds=2.", options)
    "there is no column 'x' (--label). Say --rate 0.2 or --option folds=2."
    >>> in_options("Say mapping={0: 0, 1: 2}.", {"map": True})
    'Say --map 0=0,1=2.'
    """

    def option_of(name: str) -> str | None:
        option = RENAMED.get(name, name.replace("_", "-"))
        return next((each for each in (option, option.removeprefix("n-")) if each in options), None)

    def bare(match: re.Match[str]) -> str:
        option = None if match[1] is None or match[1] in COLUMN_NAMES else option_of(match[1])
        return match[0] if option is None else f"--{option}"

    def worded(match: re.Match[str]) -> str:
        name, value = match[1], re.sub(r"['\[\]{}]|(?<=,) |\.\.\.", "", match[2].replace(": ", "="))
        option = option_of(name)
        if option is not None:
            return f"--{option} {value}" if value and options[option] else f"--{option}"
        return f"--option {name}={value}" if value and "option" in options else match[0]

    if "map" in options:
        message = MAPPING.sub(lambda match: f"--map {_pairs(match[1])}", message)
    for pattern, words in IN_PYTHON:
        message = pattern.sub(words, message)
    message = BARE.sub(bare, ARGUMENT.sub(worded, message))
    return re.sub(r"(--[\w-]+) \(\1\)", r"\1", message)


def _pairs(mapping: str) -> str:
    """The pairs of a mapping as an option has them; in words where they are words."""
    pairs = mapping.replace(": ", "=").replace(", ", ",")
    return pairs if re.fullmatch(r"[\d.=,-]+", pairs) else "VALUE=GRADE,..."
