"""Fifty annotators at once against one server of a labelling project: what is lost, how long does it take?

    python benchmarks/labeling_load.py          # about ten minutes; stops by itself

`cleanrank serve` runs in a process of its own with its usual limits. This process plays the browsers, each
with a token and a connection of its own: an answer, the page with the next question, a pause, and so on. One
answer in twenty is sent twice under the same id, as a browser does when it got no response. At the end the
server is killed, and its file is held against what it acknowledged.

Three runs: *in a hurry*, with pauses of one second on average (exponential), faster than people judge; the
same *while figures are counted*, where the owner has the page of progress open, counts the latest answers
again as soon as they are counted, and asks for the next doubtful labels once; and *without a pause*, where
everybody sends the next answer as soon as the page is there: the server's limit.
"""

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import psutil
from timing import RESULTS, write_result

from cleanrank.labeling.records import Document, Scale
from cleanrank.labeling.store import create_project, open_project
from cleanrank.report.table import Table

ANNOTATORS = 50
ANSWERS = 10_000
DOCUMENTS = 10  # of a query, which is a unit
OWNER = "owner"
PER_UNIT = 3  # annotators
N_FEATURES = 10
REPEATED = 20  # one answer in so many is sent twice
GOAL = 0.1  # seconds that 99 of 100 answers may take
LIMIT = 900.0  # seconds that a run may take
LOOK = 1.5  # seconds between two looks at the page of progress, as its script does
# What annotators do -> the mean pause between two answers, whether the owner looks at what they changed.
RUNS = {
    "in a hurry": (1.0, False),
    "in a hurry while figures are counted": (1.0, True),
    "without a pause": (0.0, False),
}


def make_project(path: Path, answers: int) -> None:
    """A project of queries with texts, one batch of grades that wants at least so many answers."""
    n_queries = -(-answers // (DOCUMENTS * PER_UNIT)) + ANNOTATORS
    text = "An apple ripens because its own ethylene starts the change of starch to sugar. " * 12
    rows = range(n_queries * DOCUMENTS)
    features = np.random.default_rng(0).normal(size=(len(rows), N_FEATURES))
    fields = [{"title": f"Title {row}", "text": text} for row in rows]
    documents = (
        Document(row, f"q{row // DOCUMENTS}", f"d{row}", row, row % 3, fields[row], features[row])
        for row in rows
    )
    queries = {f"q{query}": f"how do apples of kind {query} ripen" for query in range(n_queries)}
    scale = Scale(("Not relevant", "Related", "Answers the question"))
    names = [f"feature {number}" for number in range(N_FEATURES)]
    with create_project(path, documents, queries, name="Load", scale=scale, feature_names=names) as project:
        units = [rows[start : start + DOCUMENTS] for start in range(0, len(rows), DOCUMENTS)]
        project.add_batch(units, name="All", kind="grade", annotators_per_unit=PER_UNIT)


@dataclass
class Browser:
    """One annotator's connection: a request at a time, opened again when the server closed it."""

    host: str
    port: int
    headers: dict[str, str] = field(default_factory=dict)
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the response."""
        form = isinstance(body, bytes)
        content = body if form else b"" if body is None else json.dumps(body).encode()
        headers = {"host": f"{self.host}:{self.port}", **self.headers}
        if body is not None:
            kind = "application/x-www-form-urlencoded" if form else "application/json"
            headers |= {"content-type": kind, "content-length": str(len(content))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        request = f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + content
        while True:
            if self.streams is None or self.streams[0].at_eof():
                self.streams = await asyncio.open_connection(self.host, self.port)
            reader, writer = self.streams
            writer.write(request)
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):  # closed after a long pause
                self.streams = None
                continue
            lines_of = (line.partition(": ") for line in head[1:] if line)
            got = {name.lower(): value for name, _, value in lines_of}
            return int(head[0].split()[1]), got, await reader.readexactly(int(got["content-length"]))

    async def sign_in(self, link: str) -> None:
        """Takes the cookie of an invitation and the check value of the pages."""
        address = urlsplit(link)
        status, headers, _ = await self.ask("GET", f"/?{address.query}")
        assert status == 200, status
        self.headers["cookie"] = headers["set-cookie"].partition(";")[0]
        _, _, page = await self.ask("GET", "/")
        found = re.search(rb'name="csrf" content="([0-9a-f]+)"', page)
        assert found is not None
        self.headers["x-csrf-token"] = found[1].decode()


@dataclass
class Seen:
    """What the annotators saw: seconds of answers and pages, and the answers that were acknowledged."""

    answers: list[float] = field(default_factory=list)
    pages: list[float] = field(default_factory=list)
    acknowledged: dict[str, int] = field(default_factory=dict)  # request -> event
    statuses: Counter[int] = field(default_factory=Counter)
    sent: int = 0
    counted: int = 0  # looks at figures that were up to date


async def annotate(browser: Browser, number: int, pause: float, answers: int, seen: Seen) -> None:
    """One person's work: answers, pages and pauses, until enough answers were sent by all together."""
    rng = random.Random(number)
    await asyncio.sleep(rng.random() * pause)
    _, _, text = await browser.ask("GET", "/api/batches/1/question")
    state = json.loads(text)
    while seen.sent < answers and not state["done"]:
        seen.sent += 1
        request = f"load-{number:03d}-{rng.getrandbits(64):016x}"
        body = {"unit": state["unit"], "question": state["question"], "value": rng.randrange(3)}
        body |= {"seconds": 1.0, "request": request}
        for _ in range(1 + (seen.sent % REPEATED == 0)):
            start = time.perf_counter()
            status, _, text = await browser.ask("POST", "/api/batches/1/answer", body)
            seen.answers.append(time.perf_counter() - start)
            seen.statuses[status] += 1
            state = json.loads(text)
            if status != 200 or seen.acknowledged.setdefault(request, state["event"]) != state["event"]:
                raise SystemExit(f"an answer got {status} {state}")
        start = time.perf_counter()
        status, _, _ = await browser.ask("GET", "/judge/1")
        seen.pages.append(time.perf_counter() - start)
        seen.statuses[status] += 1
        if pause:
            await asyncio.sleep(rng.expovariate(1 / pause))


async def watch(owner: Browser, seen: Seen) -> None:
    """The owner's page of progress, over and over until it is cancelled; the next rows are asked for once."""
    form = {"csrf": owner.headers["x-csrf-token"], "purpose": "repair", "n": 100}
    status, _, text = await owner.ask("POST", "/progress", urlencode(form).encode())
    assert status == 303, text
    while True:
        status, _, text = await owner.ask("GET", "/progress")
        seen.statuses[status] += 1
        seen.counted += b"being counted" not in text
        await asyncio.sleep(LOOK)


async def everybody(
    links: list[str], owner: str, pause: float, answers: int, looks: bool
) -> tuple[Seen, float]:
    """All annotators at once; what they saw, and the seconds that it took."""
    seen, address = Seen(), urlsplit(links[0])
    browsers = [Browser(str(address.hostname), int(address.port or 0)) for _ in links]
    for browser, link in zip(browsers, links, strict=True):
        await browser.sign_in(link)
    watching = None
    if looks:
        browser = Browser(str(address.hostname), int(address.port or 0))
        await browser.sign_in(owner)
        watching = asyncio.create_task(watch(browser, seen))
    start = time.perf_counter()
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        for number, browser in enumerate(browsers):
            group.create_task(annotate(browser, number, pause, answers, seen))
    seconds = time.perf_counter() - start
    if watching is not None:
        assert watching.cancel(), watching.exception()
    return seen, seconds


def measure(pause: float, looks: bool, answers: int, folder: Path) -> dict[str, Any]:
    """Serves a new project, lets everybody answer, and compares the file with what was acknowledged."""
    path = folder / "load.sqlite"
    make_project(path, answers)
    names = [f"annotator {number:02d}" for number in range(ANNOTATORS)]
    invited = [word for name in names for word in ("--invite", name)]
    options = ["--no-open", "--port", "0", "--annotator", OWNER, *invited]
    command = [sys.executable, "-m", "cleanrank", "serve", str(path), *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        process = psutil.Process(server.pid)
        links = dict(server.stdout.readline().rstrip("\n").split("\t") for _ in range(ANNOTATORS + 1))
        load, before = os.getloadavg()[0], sum(process.cpu_times()[:2])
        own = [links[name] for name in names]
        seen, seconds = asyncio.run(everybody(own, links[OWNER], pause, answers, looks))
        used = sum(process.cpu_times()[:2]) - before
    finally:
        server.kill()  # nothing may be lost even so
        server.communicate()
    stored = check(path, seen)
    return {
        "pause_s": pause,
        "answers": stored,
        "sent_twice": len(seen.answers) - stored,
        "lost": 0,
        "doubled": 0,
        "seconds": round(seconds, 1),
        "answers_per_second": round(stored / seconds, 1),
        "load_before": round(load, 2),
        **({"looks_at_figures": seen.counted} if looks else {}),
        "server_cpu_ms_per_answer": round(1000 * used / stored, 2),  # with the page after it
        "answer_ms": spread(seen.answers),
        "page_ms": spread(seen.pages),
    }


def check(path: Path, seen: Seen) -> int:
    """How many answers are stored; raises unless these are the acknowledged ones, each once."""
    with open_project(path) as project:
        events = project.events()
    stored = Counter(event.request for event in events)
    asked = Counter((event.annotator, event.unit, event.question) for event in events)
    lost = seen.acknowledged.keys() - stored.keys()
    doubled = [key for counts in (stored, asked) for key, count in counts.items() if count > 1]
    if lost or doubled or stored.keys() - seen.acknowledged.keys():
        raise SystemExit(f"{len(lost)} answers lost, {len(doubled)} doubled")
    assert {event.request: event.id for event in events} == seen.acknowledged
    assert set(seen.statuses) == {200}, seen.statuses
    return len(events)


def spread(seconds: list[float]) -> dict[str, float]:
    """Median, 95 and 99 of 100, and the longest, in milliseconds."""
    parts = statistics.quantiles(seconds, n=100, method="inclusive")
    found = {"median": parts[49], "p95": parts[94], "p99": parts[98], "longest": max(seconds)}
    return {name: round(1000 * value, 1) for name, value in found.items()}


def load_table() -> str:
    """The runs as a table of docs/benchmarks.md."""
    stored = json.loads((RESULTS / "labeling_load.json").read_text())
    rows = [{"what": name, **run} for name, run in stored["runs"].items()]
    columns = [("50 annotators", "what"), ("pause", "pause_s", ".0f"), ("answers", "answers", ",")]
    columns += [("lost", "lost", ","), ("doubled", "doubled", ","), ("a second", "answers_per_second", ".0f")]
    columns += [("answer, median ms", "answer_ms.median", ".0f"), ("p99 ms", "answer_ms.p99", ".0f")]
    columns += [("page, median ms", "page_ms.median", ".0f"), ("page, p99 ms", "page_ms.p99", ".0f")]
    return Table.of(rows, columns).markdown()


TEXTS = {"labeling load": load_table}
PICTURES: dict[str, object] = {}


def main() -> None:
    """Measures the runs and writes benchmarks/results/labeling_load.json."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--only", choices=RUNS, help="measure one run and write nothing")
    options = parser.parse_args()
    runs = {}
    for name, (pause, looks) in RUNS.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                runs[name] = measure(pause, looks, options.answers, Path(folder))
            print(name, json.dumps(runs[name]), file=sys.stderr)
    if options.only is None:
        hurried = runs["in a hurry"]["answer_ms"]["p99"]
        facts = {
            "annotators": ANNOTATORS,
            "rate_limit": "as served: 20 requests a second and person, 100 at once",
            "goal_ms": 1000 * GOAL,
            "goal_met": hurried < 1000 * GOAL,
        }
        write_result("labeling_load", {**facts, "runs": runs})


if __name__ == "__main__":
    main()
