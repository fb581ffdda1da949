"""Writes what the first example of the README prints into its block marked ``<!-- prints -->``.

python docs/fill_prints.py
"""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "README.md"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTS = re.compile(r"(<!-- prints -->\n```text\n).*?(^```$)", re.MULTILINE | re.DOTALL)

if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    code = PYTHON.search(text)
    assert code is not None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code[1], {})
    PAGE.write_text(PRINTS.sub(lambda m: m[1] + printed.getvalue() + m[2], text), encoding="utf-8")
