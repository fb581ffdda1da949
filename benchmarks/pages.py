"""Pages of docs/ whose tables the benchmarks write."""

from collections.abc import Mapping
from pathlib import Path

from cleanrank.data.files import written_whole


def fill(page: Path, parts: Mapping[str, str]) -> None:
    """Puts texts between the comments <!-- name --> and <!-- end name --> of a page."""
    text = page.read_text(encoding="utf-8")
    for name, words in parts.items():
        opens, closes = f"<!-- {name} -->", f"<!-- end {name} -->"
        before, _, rest = text.partition(opens)
        _, is_there, after = rest.partition(closes)
        if is_there:
            text = f"{before}{opens}\n{words.strip()}\n{closes}{after}"
    with written_whole(page) as part:
        part.write_text(text, encoding="utf-8")
