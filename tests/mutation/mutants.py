"""Single-line mistakes to put into the code: those of ``mutants.toml``, and others drawn from its syntax."""

import ast
import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "cleanrank"
LIST = Path(__file__).with_name("mutants.toml")
FLIPS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
SIGNS = {ast.Add: "-", ast.Sub: "+"}
# Keywords that check, word or lay out, and change no result.
CALM = (
    "strict", "dtype", "timespec", "indent", "encoding", "ensure_ascii", "frozen", "n_jobs", "progress",
    "remedy",
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One mistake: the old text, which stands once in the file, becomes the new one."""

    file: str
    old: str
    new: str
    what: str
    origin: str = "written"
    tests: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Its file, below src/cleanrank unless it is named from the root on."""
        return (ROOT if self.file.startswith("benchmarks/") else PACKAGE) / self.file

    @property
    def selection(self) -> tuple[str, ...]:
        """The tests that should see it: its own, those listed for its file, else those that mirror it."""
        return self.tests or listed_tests().get(self.file) or mirror(self.file)

    def applied(self, text: str) -> str:
        """The text of its file with the mistake."""
        assert text.count(self.old) == 1, f"{self.file}: {self.old!r} occurs {text.count(self.old)} times"
        return text.replace(self.old, self.new)


def area(file: str) -> str:
    """The area of a file: the one that names the longest start of it."""
    areas = tomllib.loads(LIST.read_text())["areas"]
    starts = {start: name for name, some in areas.items() for start in some}
    return starts[max((start for start in starts if file.startswith(start)), key=len)]


def mirror(file: str) -> tuple[str, ...]:
    """The tests that mirror a module: tests/noise/test_gold*.py of noise/gold.py."""
    path = Path(file)
    found = (ROOT / "tests" / path.parent).glob(f"test_{path.stem.lstrip('_')}*.py")
    return tuple(sorted(str(each.relative_to(ROOT)) for each in found))


def listed_tests() -> dict[str, tuple[str, ...]]:
    """Tests of files that others than their mirrors look at."""
    return {name: tuple(tests) for name, tests in tomllib.loads(LIST.read_text())["tests"].items()}


def written() -> list[Mutant]:
    """The mutants of ``mutants.toml``."""
    entries = tomllib.loads(LIST.read_text())["mutant"]
    return [Mutant(**{**entry, "tests": tuple(entry.get("tests", ()))}) for entry in entries]


def drawn(seed: int | None = None) -> list[Mutant]:
    """Mutants of the syntax of some files, as many of each, drawn by a seed: by default that of the list."""
    settings = tomllib.loads(LIST.read_text())["drawn"]
    settings["seed"] = settings["seed"] if seed is None else seed
    mutants = []
    for file in settings["files"]:
        every = of_syntax(file)
        rng = random.Random(f"{settings['seed']} {file}")
        mutants += rng.sample(every, min(settings["per_file"], len(every)))
    equivalent = {each["old"] for each in settings["equivalent"]}
    return [mutant for mutant in mutants if mutant.old.strip() not in equivalent]


def of_syntax(file: str) -> list[Mutant]:
    """Flipped comparisons, +1, swapped signs, dropped keywords, negated conditions: all of a file."""
    text = (PACKAGE / file).read_text()
    lines = text.splitlines(keepends=True)
    mutants = {}
    for node in _statements(ast.parse(text)):
        for where, new, what in _mistakes(node):
            line = lines[where.lineno - 1]
            old = line.encode()
            changed = (old[: where.col_offset] + new.encode() + old[where.end_col_offset :]).decode()
            if text.count(line) == 1 and changed != line:
                mutants[changed] = Mutant(file, line, changed, what, "drawn")
    return [mutants[changed] for changed in sorted(mutants)]


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes of what runs: no annotations, messages, texts of objects or definitions of modules."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.arg | ast.JoinedStr):
            continue
        if isinstance(node, ast.FunctionDef) and node.name in ("__repr__", "describe"):
            continue
        if isinstance(node, ast.keyword) and node.arg in CALM:
            continue
        if isinstance(node, ast.If | ast.Compare | ast.BoolOp | ast.BinOp | ast.Call | ast.Constant):
            yield node
        if isinstance(node, ast.FunctionDef):
            for part in node.body:
                yield from _statements(ast.Module([part], []))
        elif isinstance(node, ast.AnnAssign):
            continue
        else:
            yield from _statements(node)


def _mistakes(node: ast.AST) -> Iterator[tuple[ast.expr, str, str]]:
    """(expression on one line, what replaces it, what is wrong then)."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and _is_short(node):
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        flip = FLIPS[type(node.ops[0])]
        yield node, f"{left} {flip} {right}", "comparison flipped"
    if isinstance(node, ast.If | ast.IfExp) and _is_short(node.test) and not _raises(node):
        yield node.test, f"not ({ast.unparse(node.test)})", "condition negated"
    if isinstance(node, ast.BoolOp) and _is_short(node):
        other = " or " if isinstance(node.op, ast.And) else " and "
        yield node, f"({other.join(f'({ast.unparse(value)})' for value in node.values)})", "and for or"
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS and _is_short(node):
        sign = SIGNS[type(node.op)]
        yield node, f"({ast.unparse(node.left)} {sign} {ast.unparse(node.right)})", "sign swapped"
    if isinstance(node, ast.Constant) and type(node.value) is int and _is_short(node):
        yield node, str(node.value + 1), "off by one"
    if isinstance(node, ast.Call) and _is_short(node) and ast.unparse(node.func) not in ("invalid", "field"):
        for place, keyword in enumerate(node.keywords):
            if keyword.arg is not None and keyword.arg not in CALM:
                rest = [each for other, each in enumerate(node.keywords) if other != place]
                yield node, ast.unparse(ast.Call(node.func, node.args, rest)), f"without {keyword.arg}="


def _is_short(node: ast.expr) -> bool:
    return node.lineno == node.end_lineno


def _raises(node: ast.If | ast.IfExp) -> bool:
    return isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)
