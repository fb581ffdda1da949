"""An extension of griffe: doctests, which Markdown would take as quotations, become code."""

import re
from typing import Any

from griffe import Docstring, Extension, Object

DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class DoctestBlocks(Extension):
    """Fences every doctest, up to the next blank line."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrites the docstring of an object that was read."""
        if obj.docstring:
            obj.docstring = _fenced(obj.docstring)


def _fenced(docstring: Docstring) -> Docstring:
    docstring.value = DOCTEST.sub(lambda doctest: f"```pycon\n{doctest[0]}\n```", docstring.value)
    return docstring
