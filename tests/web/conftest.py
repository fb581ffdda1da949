"""A small project, the app over it in this process, and a live server in a process of its own."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import numpy as np
import pytest

from cleanrank.experiments.results import Result, pack
from cleanrank.experiments.store import Store
from cleanrank.labeling.records import Document, Scale
from cleanrank.labeling.store import create_project
from cleanrank.web.background import AT_ONCE

N_DOCUMENTS = 6
HOSTILE = "<script>document.title = 'taken over'</script><img src=x onerror=alert(1)>\" onfocus=\"alert(2)"
SCALE = Scale(("Not relevant", "Related", "Answers the question"))
QUERIES = {"q1": "how do apples ripen", "q2": f"second {HOSTILE}"}
BATCHES = {"grade": 1, "pairs": 2, "top-k": 3, "review": 4}


def documents():
    """Documents of two queries: titles, texts and addresses, one of each that wants to be run."""
    for number in range(2 * N_DOCUMENTS):
        query, place = divmod(number, N_DOCUMENTS)
        fields = {"title": f"Title {number}", "text": f"Text of document {number}. " * 20}
        fields["url"] = f"https://example.org/{number}"
        if place == 1:
            fields = {"title": HOSTILE, "text": HOSTILE, "url": "javascript:alert(3)", "source": HOSTILE}
        yield Document(number, f"q{query + 1}", f"d{number}", number, number % 3, fields)


def make_project(path):
    """A project of two queries with a batch of each kind; the first unit of each is about query q1."""
    with create_project(path, documents(), QUERIES, name="Fruit", scale=SCALE) as project:
        both = [tuple(range(start, start + N_DOCUMENTS)) for start in (0, N_DOCUMENTS)]
        for kind in ("grade", "pairs", "top-k"):
            settings = {"k": 3} if kind == "top-k" else {"n_grades": 3} if kind == "grade" else {}
            project.add_batch(both, name=f"Batch {kind}", kind=kind, settings=settings, annotators_per_unit=5)
        rows = [((row,), {"doubt": 0.9 - row / 20, "suggested_label": (row + 1) % 3}) for row in range(4)]
        project.add_batch(
            rows, name="Suspects", kind="review", purpose="repair", blind=False, annotators_per_unit=2
        )
    return path


class Threads(ThreadPoolExecutor):
    """In place of processes, so that tests reach what works in them."""

    def __init__(self):
        super().__init__(AT_ONCE)

    def shutdown(self, wait=True, kill_workers=False, **options):
        super().shutdown(wait=wait, cancel_futures=kill_workers)


@pytest.fixture(autouse=True)
def _threads(monkeypatch):
    monkeypatch.setattr("cleanrank.web.background.processes", Threads)


@pytest.fixture
def project_file(tmp_path):
    """The path of a new project."""
    return make_project(tmp_path / "fruit.sqlite")


def make_judged(path):
    """A project of twelve queries whose labels three people have judged: ann rarely errs, cy mostly does.

    Every tenth document of the first batch is a gold question; the second batch is a gold sample. Three
    others, of pairs, doubted labels and grades, are untouched.
    """
    rng = np.random.default_rng(0)
    n_queries, n_documents = 12, 12
    X = rng.normal(size=(n_queries * n_documents, 3))
    truth = np.digitize(X[:, 0] + 0.5 * X[:, 1], [0.3, 1.2])

    def said(rows, error):
        return np.where(rng.random(len(rows)) < error, rng.integers(3, size=len(rows)), truth[rows]).tolist()

    rows = np.arange(len(X))
    given = said(rows, 0.2)
    shown = [
        Document(row, f"q{row // n_documents}", f"d{row}", row, given[row], {"title": f"Title {row}"}, X[row])
        for row in rows.tolist()
    ]
    names = ("bm25", "length", "clicks")
    with create_project(path, shown, {}, name="Judged", scale=SCALE, feature_names=names) as project:
        gold = [{"is_gold": True, "true_grade": int(truth[row])} if row % 10 == 0 else {} for row in rows]
        units = [((row,), about) for row, about in zip(rows.tolist(), gold, strict=True)]
        project.add_batch(units, name="Labels", kind="grade", annotators_per_unit=3)
        sample = rng.permutation(rows)[:60].tolist()
        project.add_batch([(row,) for row in sample], name="Sample", kind="grade", purpose="gold")
        project.add_batch([rows[:8].tolist()], name="Pairs", kind="pairs")
        doubted = [
            ((row,), {"doubt": 0.9 - row / 99, "suggested_label": int(truth[row])}) for row in range(9)
        ]
        project.add_batch(doubted, name="Suspects", kind="review", purpose="repair", blind=False)
        left = [rows[-12:-6].tolist(), rows[-6:].tolist()]
        project.add_batch(left, name="Grades left", kind="grade", annotators_per_unit=2)
        for batch, asked in ((1, rows), (2, np.array(sample))):
            for name, error in (("ann", 0.05), ("bob", 0.15), ("cy", 0.7))[: 4 - batch]:
                for unit, value in enumerate(said(asked, error)):
                    project.append(
                        annotator=name,
                        batch=batch,
                        unit=unit,
                        kind="answer",
                        question="0",
                        value=value,
                        seconds=float(rng.gamma(3, 2)),
                        request=f"{batch}-{unit}",
                    )
    return path


def make_runs(path):
    """A file of runs: two methods of the recipe demo/two at two levels of noise, a failure of demo/none."""
    rng = np.random.default_rng(1)
    queries = [f"q{query}" for query in range(40)]
    with Store(path) as store:
        for number in range(8):
            method, rate, fold = ("plain", "robust")[number % 2], (0.0, 0.3)[number // 2 % 2], number // 4 + 1
            cell = {"dataset": "demo", "method": method, "algorithm": method, "version": 1, "fold": fold}
            cell |= {"seed": 1, "noise": "uniform" if rate else "none", "rate": rate, "measures": ["ndcg@10"]}
            values = {"ndcg@10": np.clip(rng.normal(0.6 - rate * (method == "plain"), 0.1, 40), 0, 1)}
            means = {"ndcg@10": float(values["ndcg@10"].mean())}
            result = Result("done", values, means, queries, {}, "", {"numpy": "2"}, 1.5)
            store.add(f"key{number}", "demo/two", cell, pack(result))
        store.add("bad", "demo/none", {**cell, "seed": 9}, pack(Result("failed", error="no luck")))
    return path


class Client:
    """Somebody's browser without a screen: keeps cookies, sends the check value of the page."""

    def __init__(self, app, *, host="127.0.0.1", token=""):
        from fastapi.testclient import TestClient

        self.http = TestClient(app, base_url=f"http://{host}", raise_server_exceptions=False)
        self.page = self.http.get("/", params={"token": token} if token else {})
        if token:
            self.page = self.http.get("/")
        check_value = re.search(r'name="csrf" content="([0-9a-f]+)"', self.page.text)
        self.csrf = check_value[1] if check_value else ""

    def get(self, path, **options):
        return self.http.get(path, **options)

    def post(self, path, body=None, **headers):
        """Sends JSON as the page's script does; a header of None is left out."""
        all_headers = {"x-csrf-token": self.csrf} | {k.replace("_", "-"): v for k, v in headers.items()}
        kept = {name: value for name, value in all_headers.items() if value is not None}
        return self.http.post(path, json=body, headers=kept)

    def state(self, batch):
        return self.get(f"/api/batches/{batch}/question").json()

    def answer(self, batch, said, **changes):
        """Answers the open question, or what ``changes`` say."""
        state = self.state(batch)
        body = {"unit": state["unit"], "question": state["question"], "value": said, "seconds": 1.5}
        return self.post(f"/api/batches/{batch}/answer", body | {"request": uuid4().hex} | changes)


@pytest.fixture
def local(project_file):
    """The client of an app that needs no tokens; the owner is called ann."""
    from cleanrank.web.app import create_app

    client = Client(create_app(project_file, tokens=False, owner="ann"))
    with client.http:
        yield client


class Live:
    """A server in a process of its own, which can be killed and started again at the same address."""

    def __init__(self, path, *options):
        self.path, self.options = path, options
        self.links = {}
        self.process = None
        self.start("--port", "0")

    def start(self, *options):
        words = ["serve", str(self.path), "--no-open", "--annotator", "ann", *self.options, *options]
        command = [sys.executable, "-m", "cleanrank", *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = self.process.stderr.readline()  # printed once the server listens
        address = re.search(r"at (http://\S+);", first)
        assert address, first + self.process.stderr.read()
        self.url = address[1]

    def kill(self):
        """Ends the server at once, as a crash would."""
        self.process.kill()
        self.process.communicate()

    def restart(self):
        self.start("--port", self.url.rpartition(":")[2])


@pytest.fixture
def live(project_file):
    """Starts a server over the project: live("--invite", "bob")."""
    servers = []

    def start(*options):
        servers.append(Live(project_file, *options))
        return servers[-1]

    yield start
    for each in servers:
        if each.process.poll() is None:
            each.kill()


@pytest.fixture
def open_page(browser):
    """Opens a page in a browser of its own: open_page(url, color_scheme="dark"). Scripts must not fail."""
    contexts, problems = [], []

    def go(url, *, width=1280, height=860, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)  # figures take long where the machine has other work
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda said: problems.append(said.text) if "Content Security Policy" in said.text else None,
        )
        page.goto(url)
        return page

    yield go
    for context in contexts:
        context.close()
    assert problems == []
