"""Puts one mistake at a time into a copy of the tree and runs the tests that should see it.

    nice -n 10 python -m tests.mutation.run [--jobs 2] [--only rankers] [--results FILE] [--again survived]

Mistakes are those of mutants.toml and some drawn from the syntax of the critical modules by a fixed seed (see
mutants.py). Results that are there already are kept: the run goes on where it was broken off; a mutant that
changed, or whose module did, and those of --again STATE run anew. Nothing in the working tree is touched.
--seed draws others, which no test was written for; their results go to a file of their own.

A test that fails with a mistake must pass without it. The processes that run tests are forked from one that
has loaded the libraries. Compiled kernels are kept between runs, except those of a changed module and of all
modules that import it, so that no machine code of one mutant reaches another.
"""

import argparse
import ast
import hashlib
import json
import multiprocessing
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tests.mutation.mutants import PACKAGE, ROOT, Mutant, area, drawn, written

RESULTS = ROOT / "benchmarks" / "results" / "mutation.json"
DRAWN_ANEW = RESULTS.with_stem("mutation_drawn_anew")
LEFT_OUT = (".git", ".venv", ".cleanrank", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis")
SECONDS = 300  # of processor time that a mutant gets
LIBRARIES = (
    "pytest", "hypothesis", "numpy.testing", "scipy.stats", "scipy.optimize", "numba", "lightgbm", "pandas",
    "pyarrow.parquet", "pyarrow.csv", "sklearn.base", "sklearn.model_selection", "typer", "rich.progress",
    "jinja2",
)  # fmt: skip


class Workshop:
    """A copy of the tree, the machine code of its kernels, and a folder for what tests write."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cleanrank-mutation-"))
        self.tree = self.folder / "tree"
        shutil.copytree(ROOT, self.tree, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        self.compiled = self.folder / "compiled"
        self.compiled.mkdir()
        self.passing: dict[str, bool] = {}

    def passes(self, test: str) -> bool:
        """Whether a test passes on the tree as it is; a file of tests, whether it can be collected."""
        if test not in self.passing:
            more = [] if "::" in test else ["--collect-only"]
            self.passing[test] = self.run_tests([test, *more], self.compiled)[0] == "survived"
        return self.passing[test]

    def try_mutant(self, mutant: Mutant) -> tuple[str, float, str]:
        """(killed, survived or timed out; seconds of processor time; the test that failed)."""
        file = self.tree / mutant.path.relative_to(ROOT)
        before, stamps = file.read_text(), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
        compiled = self.folder / "compiled-for-one"
        shutil.copytree(self.compiled, compiled, copy_function=os.link)
        stale = importers(mutant.file) if is_compiled(before, mutant.old) else set()
        for part in compiled.rglob("*.nb?"):
            if part.name.partition(".")[0] in stale:
                part.unlink()
        try:
            file.write_text(mutant.applied(before))
            state, used, by = self.run_tests(mutant.selection, compiled)
        finally:
            file.write_text(before)
            os.utime(file, ns=stamps)
        for part in compiled.rglob("*.nb?"):
            if part.name.partition(".")[0] not in stale:
                target = self.compiled / part.relative_to(compiled)
                target.parent.mkdir(parents=True, exist_ok=True)
                part.replace(target)
        shutil.rmtree(compiled)
        if state == "killed" and not self.passes(by):
            state = "tests fail without it"
        return state, used, by

    def run_tests(self, selection: Sequence[str], compiled: Path) -> tuple[str, float, str]:
        """Runs tests in a process of their own."""
        own = Path(tempfile.mkdtemp(dir=self.folder))
        log = own / "log"
        started = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = os.fork()
        if not process:
            try:
                os._exit(self._in_child(selection, compiled, own, log))
            finally:
                os._exit(3)
        status = _wait(process, 20 * SECONDS)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = ended.ru_utime + ended.ru_stime - started.ru_utime - started.ru_stime
        text = log.read_text(errors="replace") if log.exists() else ""
        shutil.rmtree(own, ignore_errors=True)
        failed = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if os.WIFSIGNALED(status):
            return "timed out", used, ""
        code = os.waitstatus_to_exitcode(status)
        state = "survived" if code == 0 else "killed" if code in (1, 2, 4) and failed else f"broken ({code})"
        return (
            state,
            used,
            failed[0].split(" - ")[0].partition(" ")[2] if failed else text[-300:] * (code != 0),
        )

    def _in_child(self, selection: Sequence[str], compiled: Path, own: Path, log: Path) -> int:
        import numba
        import pytest
        from numba.core import caching

        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
        with log.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.chdir(self.tree)
        source = str(self.tree / "src")
        os.environ |= {"PYTHONPATH": source, "XDG_CACHE_HOME": str(own / "cache"), "TMPDIR": str(own)}
        os.environ["NUMBA_CACHE_DIR"] = str(compiled)
        tempfile.tempdir = None
        numba.config.CACHE_DIR = str(compiled)
        # What a changed file makes stale is not there any more.
        caching._SourceFileBackedLocatorMixin.get_source_stamp = lambda self: "as it is"
        for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "cleanrank")]:
            del sys.modules[name]
        sys.path[:] = [source, str(self.tree), *(p for p in sys.path if p not in ("", str(ROOT)))]
        # Bytecode of the mutant must not stay.
        sys.dont_write_bytecode = compiled != self.compiled
        options = ["-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-m", "not slow"]
        code = int(
            pytest.main([*options, f"--rootdir={self.tree}", f"--basetemp={own / 'pytest'}", *selection])
        )
        sys.stdout.flush()
        used = sys.modules.get("cleanrank")
        assert used is None or str(used.__file__).startswith(source), used.__file__
        return code


def _wait(process: int, seconds: float) -> int:
    """The exit status of a process; after so many seconds it and its children are ended."""
    import signal

    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return status
        time.sleep(0.05)
    os.killpg(process, signal.SIGKILL)
    return os.waitpid(process, 0)[1]


def is_compiled(text: str, old: str) -> bool:
    """Whether machine code may hold a part of a module: a constant, or a line of a compiled function."""
    line = text.count("\n", 0, text.index(old)) + 1
    functions = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return not functions or any("kernel" in ast.unparse(each) for f in functions for each in f.decorator_list)


def importers(file: str) -> set[str]:
    """The last names of the modules that import a module, directly or not, and of the module itself."""
    uses = {}
    for path in PACKAGE.rglob("*.py"):
        name = _module(str(path.relative_to(PACKAGE)))
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        uses[name] = {f"{node.module}.{alias.name}" for node in nodes for alias in node.names}
        uses[name] |= {str(node.module) for node in nodes}
    stale = {_module(file)}
    while more := {name for name, used in uses.items() if name not in stale and used & stale}:
        stale |= more
    return {name.rpartition(".")[2] for name in stale}


def _module(file: str) -> str:
    return "cleanrank." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


WORKSHOP: list[Workshop] = []


def try_group(group: tuple[tuple[str, ...], list[Mutant]]) -> list[dict[str, Any]]:
    """Results of the mutants that a selection of tests should see."""
    if not WORKSHOP:
        WORKSHOP.append(Workshop())
    selection, mutants = group
    records = []
    for mutant in mutants:
        state, used, by = WORKSHOP[0].try_mutant(mutant)
        record = {"file": mutant.file, "old": mutant.old.strip(), "new": mutant.new.strip()}
        record |= {"what": mutant.what, "origin": mutant.origin, "tests": list(selection)}
        record |= {"module": digest(WORKSHOP[0].tree / mutant.path.relative_to(ROOT))}
        records.append(record | {"state": state, "by": by, "seconds": round(used, 1)})
        print(f"{state:10} {used:6.1f} s  {mutant.file}: {mutant.what} ({by})", flush=True)
    return records


def digest(module: Path) -> str:
    """Of a module that a mutant changes: a result holds for no other text of it."""
    return hashlib.sha256(module.read_bytes()).hexdigest()[:12]


def key(record: Mapping[str, Any]) -> tuple[str, ...]:
    """What makes a result that of a mutant."""
    return record["file"], record["module"], record["old"], record["new"], *record["tests"]


def summary(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts by origin and by area; the score is the share that was killed or ran out of time."""
    records = list(records)

    def counts(some: list[Mapping[str, Any]]) -> dict[str, Any]:
        seen = [each for each in some if each["state"] in ("killed", "survived", "timed out")]
        caught = sum(each["state"] != "survived" for each in seen)
        states = {
            state: sum(e["state"] == state for e in some) for state in sorted({e["state"] for e in some})
        }
        return {"mutants": len(some), **states, "score": round(caught / len(seen), 4) if seen else None}

    areas = {each["file"]: area(each["file"]) for each in records}
    return {
        "all": counts(records),
        "by origin": {o: counts([e for e in records if e["origin"] == o]) for o in ("written", "drawn")},
        "by area": {
            name: counts([e for e in records if areas[e["file"]] == name])
            for name in sorted(set(areas.values()))
        },
    }


def main() -> None:
    """Runs the mutants that have no result yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="parts of files, with commas between them")
    parser.add_argument("--origin", choices=("written", "drawn"))
    parser.add_argument("--again", action="append", default=[], help="a state whose mutants run again")
    parser.add_argument("--seed", type=int, help="of other mutants to draw, instead of those listed")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no group after these")
    options = parser.parse_args()
    results = options.results or (RESULTS if options.seed is None else DRAWN_ANEW)
    stored = json.loads(results.read_text())["mutants"] if results.exists() else []
    known = {key(record): record for record in stored}
    groups: dict[tuple[str, ...], list[Mutant]] = {}
    wanted = []
    listed = [*written(), *drawn()]
    for mutant in listed if options.seed is None else [m for m in drawn(options.seed) if m not in listed]:
        entry = mutant.file, digest(mutant.path), mutant.old.strip(), mutant.new.strip(), *mutant.selection
        wanted.append(entry)
        asked = options.origin in (None, mutant.origin)
        asked = asked and any(part in mutant.file for part in options.only.split(","))
        if asked and (entry not in known or known[entry]["state"] in options.again):
            groups.setdefault(mutant.selection, []).append(mutant)
    print(
        f"{len(wanted)} mutants, {sum(map(len, groups.values()))} to run in {len(groups)} groups", flush=True
    )
    for name in LIBRARIES:
        __import__(name)
    until = time.monotonic() + options.seconds
    # No multiprocessing.Pool: its daemons may have no children, and tests of experiments start processes.
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(options.jobs, mp_context=fork) as pool:
        for group in as_completed([pool.submit(try_group, group) for group in groups.items()]):
            known |= {key(record): record for record in group.result()}
            kept = [known[entry] for entry in wanted if entry in known]
            write(results, kept, len(wanted))
            if time.monotonic() > until:
                pool.shutdown(cancel_futures=True)
                break
    kept = [known[entry] for entry in wanted if entry in known]
    print(json.dumps(summary(kept)["by origin"], indent=1))


def write(path: Path, records: list[Mapping[str, Any]], listed: int) -> None:
    """Writes the results whole or not at all."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    versions = {"python": platform.python_version(), "commit": commit.stdout.strip()}
    part = path.with_suffix(".part")
    figures = {"listed": listed, **summary(records), "versions": versions, "mutants": records}
    part.write_text(json.dumps(figures, indent=1) + "\n")
    part.replace(path)


if __name__ == "__main__":
    main()
