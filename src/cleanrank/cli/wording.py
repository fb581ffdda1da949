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
}
# Not within a quoted value, a measure (err:max_grade=4), or an --option that is named already.
VALUE = r"('[^']*'|\[[^\]]*\]|-?[\w.]*\w|)"
ARGUMENT = re.compile(rf"(?<![\w'\":=.-])(?<!--option )([a-z][a-z_]+)={VALUE}(?![\w=])")


def in_options(message: str, options: Mapping[str, bool]) -> str:
    """A message with arguments of Python written as options.

    Args:
        message: what the library says.
        options: the options of the command that ran (``min-docs``) and whether each takes a value; with
            ``option`` among them, settings without an option of their own become ``--option NAME=VALUE``.

    >>> options = {"label": True, "rate": True, "option": True}
    >>> in_options("there is no column 'x' (label=). Say rate=0.2 or folds=2.", options)
    "there is no column 'x' (--label). Say --rate 0.2 or --option folds=2."
    """

    def worded(match: re.Match[str]) -> str:
        name, value = match[1], re.sub(r"['\[\]]|(?<=,) ", "", match[2])
        option = RENAMED.get(name, name.replace("_", "-"))
        if option in options:
            return f"--{option} {value}" if value and options[option] else f"--{option}"
        return f"--option {name}={value}" if value and "option" in options else match[0]

    return ARGUMENT.sub(worded, message)
