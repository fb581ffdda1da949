"""Every option of the command line that is set changes what comes out, or is refused.

What comes out are standard output, remarks and the contents of the files that are written. BASES has a line
for each command, CASES what is added to it: the option with a value, or, where the option needs company,
(company, option with a value). A new option without a case fails.
"""

import io
import json
import re
import shlex
import shutil

import numpy as np
import pandas as pd
import pytest
import typer

import cleanrank as cr
from cleanrank.cli.main import app
from cleanrank.experiments.driver import reproduce
from cleanrank.experiments.store import Store
from cleanrank.judges.sampling import sample_for_evaluation
from cleanrank.labeling.imports import import_judgements
from cleanrank.labeling.projects import make_project as label_project
from cleanrank.web import server
from cleanrank.web.server import DEFAULT_PORT, invite
from tests.cli.conftest import cli as cli
from tests.cli.test_experiments import RECIPE
from tests.web.conftest import make_project

TREES = "--trees 6 --leaves 4 --min-docs 5"
ROBUST = "--model robust --trees 5 --option folds=2"
SOUR, CONFIDENT = "--method sour --end 6", "--method confident --option folds=2"
RUNS = "--runs runs/bm25.txt --runs runs/new.txt"
EVALUATION = f"gold sample --for evaluation {RUNS} --judge judge.csv --budget 8 -o sheet.csv"
JUDGED = "--judge judge.csv --gold gold.csv"
KEY = "KEY"  # of a stored cell
EXPORT = "BASE=runs export --store runs.sqlite"
HERE = "--annotator ann --terminal"
PAGE, PAGE_OF_REVIEW = (
    f"BASE={words} --annotator ann" for words in ("label shop.csv", "review shop.csv issues.csv")
)
SYSTEMS = f"BASE=label judge.csv --label grade --doc-id docid {HERE} --purpose evaluation --n 5 --runs runs"
BASES = {
    "diagnose": "diagnose shop.csv",
    "plan": "plan --budget 500 --top-k 3",
    "find-issues": "find-issues shop.csv -o out.csv",
    "convert": "convert shop.csv out.csv",
    "audit": "audit gold.csv --judge judge.csv -o out.csv --method confident --option folds=2",
    "missing": "missing holes.csv --runs first.run -o out.csv",
    "clean": "clean shop.csv issues.csv -o out.csv",
    "train": "train shop.csv -o out.txt",
    "predict": "predict model.txt shop.csv -o out.txt",
    "corrupt": "corrupt shop.csv --rate .3 -o out.csv",
    "clicks": "clicks shop.csv -o out.csv",
    "gold sample": "gold sample shop.csv --n 30 -o sheet.csv",
    "gold read": "gold read answers.csv shop.csv",
    "annotators": "annotators judged.csv",
    "judge": "judge gold.csv judge.csv",
    "evaluate": "evaluate shop.csv scores.txt",
    "compare": "compare shop.csv a=scores.txt b=others.txt --permutations 200",
    "cutoff": "cutoff shop.csv scores.txt --alpha .6 --delta .3",
    "explain-ndcg": "explain-ndcg shop.csv scores.txt --query 3",
    "reproduce": "reproduce tiny.toml --only method=chance --jobs 1 --store new.sqlite",
    "runs list": "runs list --store runs.sqlite",
    "runs show": f"runs show {KEY} --store runs.sqlite",
    "runs export": "runs export out.csv --store runs.sqlite",
    "runs gc": "runs gc --store runs.sqlite -y",
    "datasets list": "datasets list",
    "datasets show": "datasets show ml-100k",
    "datasets verify": "datasets verify ml-100k",
    "datasets path": "datasets path ml-100k",
    "label": f"label shop.csv {HERE}",
    "review": f"review shop.csv issues.csv {HERE}",
    "export": "export reviewed.sqlite -o out.csv",
    "serve": "serve project.sqlite --annotator ann",
}
CASES = {
    "diagnose": ["--profile geometric", "--rate .3", "--new-weight .9", "--turning-point .2"],
    "plan": [
        "--budget 700", "--cost 2", "--documents 12", "--error .2", "--proportions 50:30:20",
        "--prevalence .3",
        "--like shop.csv", "--top-k 2", "--pair-cost 3", "--pair-error .3", "--screen-cost .01",
        ("--screen-cost .01", "--pool 40"), "--shared .5", "--queries 5", "--seed 3",
    ],
    "find-issues": [
        "--method isolation", "--option folds=2", ("--method posterior --option folds=2",
        "--noise uniform:.3"), ("--option folds=2", "--gold answers.csv"),
        "--gold-columns query=a", ("--method clicks", "--clicks log.csv"), (SOUR, "--kind neg"), (SOUR,
        "--cutoff 3"),
        "--scheduler tcp://a:1",
        (SOUR, "--start 0"), ("--method sour", "--end 4"), (SOUR, "--model model.txt"), "--kind neg",
        "--cutoff 3",
        "--start 5", "--end 4", "--model model.txt", (SOUR, "--option rule=reference"), (SOUR,
        "--truth truth.csv"),
        (SOUR, "--top 3"), ("--option folds=2 --noise uniform:.3", "--judge-cost 1"),
        ("--option folds=2 --noise uniform:.3 --judge-cost 1", "--budget 5"),
        (f"{SOUR} --model model.txt", "--picture out.svg"), (CONFIDENT, "--seed 3"), "--judge-cost 1",
    ],
    "convert": [
        "--from parquet", "--to letor", "--combine median", "--split test", "--judgements gold.csv",
        "--dtype float16", "--n-features 9",
    ],
    "audit": [
        "--runs runs/bm25.txt", "--texts texts.csv", "--judge binary.csv", "--scores features.csv",
        "--method isolation", ("BASE=audit gold.csv --judge judge.csv -o out.csv --method confident",
        "--option folds=3"), "--sheet sheet.csv", ("--sheet sheet.csv", "--n 8"), "--n 8", "--top 3",
        "--seed 3",
    ],
    "missing": [
        "--runs second.run", "--texts pairs.csv", "--judge llm.csv", "--scores reranker.csv",
        "--gold later.csv", "--relevant 2", "--depth 3", "--unjudged ignored", "--find .5", "--threshold .3",
        "--pool pool.qrels", "--sheet sheet.csv", ("--sheet sheet.csv", "--n 5"), "--n 5",
        "--kept kept.jsonl", ("BASE=missing mined.jsonl -o out.csv", "--kept kept.jsonl"), "--seed 3",
    ],
    "clean": [
        "--mode relabel", "--min-doubt .1", ("--mode reweight", "--weight .3"), "--n-grades 9", "--by ada",
        "--combine median", "--review reviewed.sqlite",
        ("BASE=clean shop.csv -o out.csv --review reviewed.sqlite", "--combine median"),
    ],
    "label": [
        "--task pairs", ("--task top-k", "--k 2"), "--k 2", ("--task pairs", "--no-ties"),
        ("--task pairs", "--transitive"), ("--task top-k", "--neither"), "--scale 5",
        "--purpose gold", ("--purpose gold", "--n 30"),
        "--runs runs",  (SYSTEMS, "--measure dcg@5"),
        (SYSTEMS, "--compare bm25,new"), "--texts texts.csv", "--judge x", "--annotators 2",
        "--gold answers.csv", "--answers answers.csv", "--annotator eve", (PAGE, "--terminal"),
        (PAGE, "--prepare"), (PAGE, "--port 9999"), (PAGE, "--no-open"),
    ],
    "review": [
        "--n 5", "--blind", "--second-opinions 2", "--texts texts.csv", "--judge x", "--scale 5",
        "--annotator eve", (PAGE_OF_REVIEW, "--terminal"), (PAGE_OF_REVIEW, "--prepare"),
        (PAGE_OF_REVIEW, "--port 9999"), (PAGE_OF_REVIEW, "--no-open"),
    ],
    "export": [
        "--format labels", "--annotator ann",
        ("BASE=export reviewed.sqlite -o out.txt", "--combine median"),
    ],
    "train": [
        "--task ctr", "--data ml-100k", (f"{TREES} --learning-rate .5", "--valid valid.csv"),
        (f"{ROBUST} --noise uniform:.2 --valid valid.csv", "--valid-clean"), (TREES, "--model gbdt"),
        ("", "--trees 4"), ("--model prank", "--epochs 2"), "--epochs 2",
        (f"{TREES} --learning-rate .9 --valid valid.csv", "--stop-after 1"), "--stop-after 1",
        (f"{TREES} --valid valid.csv", "--measure map"), (TREES, "--learning-rate .3"), ("--trees 6",
        "--leaves 3"),
        ("--trees 6", "--min-docs 60"), (TREES, "--objective builtin"),
        ("--model pairwise --trees 6 --option weighting=prevalence", "--noise uniform:.3"),
        "--noise uniform:.3",
        (ROBUST, "--gold answers.csv"), "--gold answers.csv", "--gold-columns query=a",
        "--scheduler tcp://a:1",
        ("--model peer --trees 6", "--option alpha=.6"), ("--model peer --trees 6 --option alpha=.3",
        "--seed 3"),
    ],
    "predict": ["--part test"],
    "corrupt": [
        "--profile geometric", "--rate .4", "--matrix matrix.json", "--seed 3", "--spread .3",
        ("--profile geometric", "--option rho=.9"), "--n-grades 6", "--truth parquet",
    ],
    "clicks": [
        "--model ccm", "--sessions 2", "--scores scores.txt", "--way second", "--flip .3", "--cutoff 2",
        "--top-grade 6", "--skip-empty", ("--model pbm", "--option eta=3"), "--seed 3",
    ],
    "gold sample": [
        "--for evaluation", "--n 20", "--strategy random", ("--strategy doubt --doubt scores.txt",
        "--doubt others.txt"),
        "--form letor", "--show-given", "--seed 3",
        *(f"--{name}" for name in (
            "runs runs", "judge judge.csv", "budget 9", "unit queries", "measure ndcg@5", "compare bm25,new",
            "gold first.csv", "pilot gold.csv", "map 0=0,1=1,2=2", "width .1", "level .9",
        )),
    ],
    "gold sample --for evaluation": [
        "--runs runs/third.txt", "--judge binary.csv", "--budget 9", "--unit queries", "--measure ndcg@5",
        "--compare bm25,new", "--gold first.csv", "--pilot gold.csv", "--map 0=0,1=2,2=2",
        ("--gold first.csv", "--width 9"), ("--gold first.csv --width .4", "--level .6"), "--seed 3",
        "--n 20", "--strategy random", "--doubt scores.txt", "--form letor", "--show-given",
    ],
    "gold read": [
        "--grades 6", "--width .9", "--level .5", ("BASE=gold read blank.csv shop.csv", "--allow-unanswered"),
        ("BASE=gold read strange.csv shop.csv", "--gold-columns doc=U,query=S,grade=G"), "--seed 3",
    ],
    "annotators": [
        "--gold gold.csv", "--filter .01", "--keep 1", "--again again.csv", ("--again again.csv", "--n 5"),
        "--judge-cost 9",
        "--columns annotator=who", "--annotators a,b", "--delimiter ;", "--level .5", "--seed 3",
    ],
    "judge": [
        "--runs runs", "--features features.csv", ("--runs runs", "--measure dcg@5"), "--map 0=0,1=2,2=1",
        "--level .5", ("--features features.csv --runs runs", "--seed 3"),
    ],
    "evaluate": [
        "--measure map", "--noise uniform:.1", "--judge judge.csv", "--gold gold.csv", "--target queries",
        "--design queries", "--interval bootstrap-t", "--unjudged drop", "--map 0=0", "--allow-dependent",
        "--per-query out.csv", "--topics shared", "--level .5", "--seed 3",
    ],
    "evaluate --judge": [
        "--measure map", "--noise uniform:.1", "--target 'queries like these'", "--design stratified",
        "--interval bootstrap-t", "--unjudged drop", "--map 0=0,1=2,2=2", "--level .5", "--allow-dependent",
        "--per-query out.csv", "--topics shared", "--label x",
    ],
    "compare": [
        "--measure map", "--baseline b", "--test t", "--alternative greater", "--permutations 300",
        "--correction none", "--noise uniform:.1", "--judge judge.csv", "--gold gold.csv", "--target queries",
        "--design queries", "--interval bootstrap-t", "--unjudged drop", "--map 0=0", "--allow-dependent",
        "--topics shared", "--format latex", "--level .5", "--seed 3",
    ],
    # Of monotone risks both methods find the same cut; tests/cli/test_cutoff.py has the others.
    "cutoff": [
        "--risk false_positives", "--alpha .4", "--delta .1", "--cut rank", "--method trial",
        "--bound bentkus", "--grid 0,1", "--relevant 2",
    ],
    "explain-ndcg": ["--query 4", "--grades 1,0", "--cutoff 2"],
    "reproduce": [
        "--only seed=1", "--quick", "--engine dusk", "--scheduler tcp://a:1", "--report page.html",
        "--markdown page.md", "--pictures pictures", "--matrix", "--store runs.sqlite",
    ],
    "recipes": [], "runs list": ["--store none.sqlite"], "runs show": ["--store none.sqlite"],
    "runs export": [
        "--recipe bad", "--measure map:letor", "--values", "--store none.sqlite",
        (f"{EXPORT} folder", "--recipe tiny"), (f"{EXPORT} folder", "--measure map:letor"),
        (f"{EXPORT} out.parquet", "--values"),
    ],
    "runs gc": ["--failed", "--store none.sqlite"],
    "datasets list": ["--root elsewhere"], "datasets show": ["--root more"],
    "datasets verify": ["--root more"],
    "datasets path": ["--root more"],
    "serve": [
        "--host localhost", "--port 9999", "--invite bob", "--revoke cy", "--annotator eve",
        "--runs runs.sqlite", "--no-open",
    ],
}  # fmt: skip
COLUMNS = [
    "--label other", "--qid query", "--doc-id number", "--features a,b", "--delimiter ;", "--ratings 2",
    "--gains number", "--distribution nothing",
]  # fmt: skip
# Where tables are read only with another option.
COMPANY = {"plan": "--like shop.csv"}
# Where some columns are read and change no figure, a column that is not there is refused.
NOT_THERE = dict.fromkeys(("plan", "gold read"), ("--doc-id", "--features", "--gains"))
NOT_THERE |= dict.fromkeys(("explain-ndcg", "cutoff"), ("--doc-id", "--features"))
NOT_THERE["clean"] = ("--features", "--gains")
NOT_THERE["predict"] = ("--ratings", "--gains")  # which has no use for labels
# Refused by what they lead to, in words that do not name them.
OTHER_WORDS = ("--label other", "--data ml-100k", "--scheduler tcp://a:1", "--values")
OTHER_WORDS += ("--ratings 2", "--from parquet")
# What the seed, the name of the output and the number of threads do is tested beside each command; these must
# not change a figure, or belong to every command alike.
ALIKE = ("--json", "--force", "--jobs", "--html", "--out", "--yes", "--seed")
# Of results that come with cleanrank, which these recipes have not: see tests/experiments/test_tracked.py.
ALIKE += ("--recompute",)
SLOW = ("demo",)  # see tests/test_demo.py


def commands(command, path=()):
    """(name, command) of all commands below one."""
    if not hasattr(command, "commands"):
        return [(" ".join(path), command)]
    return [each for name, below in command.commands.items() for each in commands(below, (*path, name))]


COMMANDS = dict(commands(typer.main.get_command(app)))


def options_of(command):
    """The long names of the options of a command."""
    return [max(p.opts, key=len) for p in command.params if p.param_type_name == "option"]


def tried(name):
    """The options that have a case."""
    cases = [*CASES[name], *(COLUMNS if "--label" in options_of(COMMANDS[name]) else [])]
    return {(case if isinstance(case, str) else case[1]).split()[0] for case in cases}


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in SLOW])
def test_every_option_has_a_case(name):
    missing = set(options_of(COMMANDS[name])) - tried(name) - set(ALIKE)
    assert not missing, f"{name}: say in CASES what these change"
    assert tried(name) <= set(options_of(COMMANDS[name]))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Files for all commands."""
    folder = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(0)
    n = 240
    frame = pd.DataFrame(rng.normal(size=(n, 3)).round(4), columns=["a", "b", "c"])
    frame["number"] = np.arange(n) * 7 % 241
    frame["qid"], frame["query"] = np.arange(n) // 12, np.arange(n) // 8
    frame["label"] = np.digitize(frame.a + 0.5 * rng.normal(size=n), [-0.3, 0.8])
    frame["other"] = np.digitize(frame.b, [0.0, 1.0])
    frame.to_csv(folder / "shop.csv", index=False)
    frame[::-1].assign(label=np.digitize(frame.a[::-1], [-0.3, 0.8])).to_csv(
        folder / "valid.csv", index=False
    )
    for name in ("scores", "others"):
        np.savetxt(folder / f"{name}.txt", frame.a + rng.normal(size=n), fmt="%.6f")
    data = cr.read_data(folder / "shop.csv")
    cr.BoostedRanker(n_estimators=9, num_leaves=4, min_child_samples=5).fit_data(data).save(
        folder / "model.txt"
    )
    noisy = rng.random(n) < 0.3
    doubt = np.where(noisy, 0.9, 0.2)
    issues = cr.LabelIssues.of(data, doubt=doubt, is_label_issue=noisy, suggested_label=(data.y + noisy) % 3)
    issues.save(folder / "issues.csv", data)
    truth = pd.DataFrame({"row_id": np.arange(n), "true_grade": (data.y + noisy) % 3, "given_grade": data.y})
    truth.to_csv(folder / "truth.csv", index=False)
    rows = rng.permutation(n)[:80]
    answers = pd.DataFrame({"row_id": rows, "true_grade": truth.true_grade[rows]})
    answers.to_csv(folder / "answers.csv", index=False)
    answers.assign(true_grade=answers.true_grade.where(answers.index % 2 == 0)).to_csv(
        folder / "blank.csv", index=False
    )
    (folder / "strange.csv").write_text("S,U,G\n0,1,2\n")
    (folder / "matrix.json").write_text(json.dumps([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]]))
    log = {
        "query_id": frame.qid,
        "row_id": np.arange(n),
        "position": np.arange(n) % 12 + 1,
        "session": frame.qid,
    }
    pd.DataFrame(log).assign(click=(rng.random(n) < 0.3).astype(int)).to_csv(folder / "log.csv", index=False)
    pairs = pd.DataFrame([(f"q{q}", f"d{d}") for q in range(8) for d in range(10)], columns=["qid", "docid"])
    gold = rng.integers(0, 3, len(pairs))
    said = np.where(rng.random(len(pairs)) < 0.3, rng.integers(0, 3, len(pairs)), gold)
    pairs.assign(grade=said)[np.arange(len(pairs)) % 10 < 9].to_csv(folder / "judge.csv", index=False)
    pairs.assign(grade=np.minimum(said, 1)).to_csv(folder / "binary.csv", index=False)
    pairs.assign(grade=gold)[:60].to_csv(folder / "gold.csv", index=False)
    pairs.assign(x=rng.normal(size=len(pairs))).to_csv(folder / "features.csv", index=False)
    texts = pairs.assign(query="red pie", text=np.resize(["a red one", "some pie", "green"], len(pairs)))
    texts.to_csv(folder / "texts.csv", index=False)
    (folder / "runs").mkdir()
    for name in ("bm25", "new", "third"):
        scores = rng.permutation(len(pairs))
        lines = [
            f"{r.qid} Q0 {r.docid} 1 {s} {name}\n" for r, s in zip(pairs.itertuples(), scores, strict=True)
        ]
        (folder / "runs" / f"{name}.txt").write_text("".join(lines))
    runs = [folder / "runs" / f"{name}.txt" for name in ("bm25", "new")]
    sample_for_evaluation(runs, folder / "judge.csv", budget=5).write(folder / "first.csv")
    first = pd.read_csv(folder / "first.csv")
    first.assign(true_grade=np.arange(len(first)) % 3).to_csv(folder / "first.csv", index=False)
    judged = [pairs.assign(annotator=who, grade=(gold + (rng.random(80) < rate)) % 3) for who, rate in
              (("ada", 0.1), ("bob", 0.2), ("eve", 0.4))]  # fmt: skip
    pd.concat(judged).to_csv(folder / "judged.csv", index=False)
    _make_runs(folder)
    _make_holes(folder, rng)
    for name, users in (("sets", 3), ("more", 5)):
        (folder / name / "ml-100k").mkdir(parents=True)
        lines = [
            f"{user}\t{item}\t{1 + (user + item) % 5}\t{item}\n" for user in range(users) for item in range(9)
        ]
        (folder / name / "ml-100k" / "u.data").write_text("".join(lines))
    (folder / "elsewhere").mkdir()
    pd.DataFrame({"row_id": [0], "text": ["A red apple."]}).to_csv(folder / "texts.csv", index=False)
    _make_review(folder, data)
    make_project(folder / "project.sqlite")
    invite(folder / "project.sqlite", ["cy"])
    return folder


def _make_review(folder, data):
    """A project whose rows 0 to 4 three people have judged; of grades 0, 1 and 2 the median is 1."""
    with label_project(folder / "reviewed.sqlite", data, name="shop") as project:
        for grade, annotator in enumerate(("ann", "bob", "cy")):
            sheet = {"row_id": list(range(5)), "grade": [grade] * 5}
            import_judgements(project, sheet, annotator=annotator)


def _make_holes(folder, rng):
    """Judgements of three quarters of the pairs that runs retrieve, evidence of all, later judgements."""
    pairs = pd.DataFrame([(f"q{q}", f"d{d}") for q in range(20) for d in range(24)], columns=["qid", "docid"])
    grade = rng.integers(0, 3, len(pairs))
    for name in ("first", "second"):
        scores = zip(pairs.itertuples(), grade + rng.normal(size=len(pairs)), strict=True)
        lines = [f"{r.qid} Q0 {r.docid} 1 {score:.5f} {name}\n" for r, score in scores]
        (folder / f"{name}.run").write_text("".join(lines))
    is_judged = rng.random(len(pairs)) < 0.75
    pairs.assign(grade=grade)[is_judged].to_csv(folder / "holes.csv", index=False)
    pairs.assign(grade=grade)[~is_judged & (np.arange(len(pairs)) % 2 == 0)].to_csv(
        folder / "later.csv", index=False
    )
    pairs.assign(grade=(grade + (rng.random(len(pairs)) < 0.3)) % 3).to_csv(folder / "llm.csv", index=False)
    pairs.assign(x=grade + rng.normal(size=len(pairs))).to_csv(folder / "reranker.csv", index=False)
    words = np.array(["red pie", "a pie", "some car"])[grade]
    pairs.assign(query="red pie", text=words).to_csv(folder / "pairs.csv", index=False)
    mined = [{"query": f"red {q}", "positive": f"a red {q}", "negative": f"some {q}"} for q in "abcd"]
    (folder / "mined.jsonl").write_text("".join(json.dumps(each) + "\n" for each in mined))


def _make_runs(folder):
    """Recipes that run and that fail, and a file of their runs."""
    (folder / "tiny.toml").write_text(RECIPE)
    bad = RECIPE.replace('method = "random"', 'method = "lambdarank"\nparams = { num_leaves = 1 }')
    (folder / "bad.toml").write_text(bad)
    for name in ("tiny", "bad"):
        reproduce(folder / f"{name}.toml", store=folder / "runs.sqlite", jobs=1)


@pytest.fixture
def outcome(cli, inputs, tmp_path, monkeypatch):
    """What a command line brings: code, output and the contents of new files, without times and folders."""
    count = iter(range(1000))

    def run(line):
        folder = tmp_path / str(next(count))
        shutil.copytree(inputs, folder)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("CLEANRANK_DATA", "sets")
        before = {path for path in folder.rglob("*") if path.is_file()}
        if KEY in line:
            with Store(folder / "runs.sqlite", create=False) as store:
                line = line.replace(KEY, store.records(recipe="tiny")[0].key)
        done = cli(*shlex.split(line))
        files = [
            path.read_bytes()
            if path.suffix in (".parquet", ".png")
            else _calm(path.read_text(errors="replace"))
            for path in sorted(set(folder.rglob("*")) - before)
            if path.is_file() and ".sqlite" not in path.name and ".cleanrank" not in str(path)
        ]
        out, err = (_calm(text.replace(str(folder), "")) for text in (done.out, done.err))
        return done.code, out, err, files

    return run


@pytest.fixture(autouse=True)
def _without_server(monkeypatch):
    """In place of a server, what it would be told is printed."""

    class Listening:
        def __init__(self, host=None, port=None):
            self.getsockname = lambda: (host or "127.0.0.1", port or DEFAULT_PORT)

    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr(server, "listen", Listening)
    monkeypatch.setattr(server, "serve", lambda path, listening, **options: print(path, options))


def _calm(text):
    """A text without times, durations and names of outputs."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+|token=[\w-]+", "", text)
    return re.sub(r"in \d+ s|\"seconds\": [\d.e-]+|wall_seconds.*", "", text)


CHECKED = [name for name in CASES if name in BASES or " --" in name]


@pytest.mark.parametrize("name", CHECKED)
def test_every_option_that_is_set_changes_the_result_or_is_refused(outcome, name):
    base = {
        "gold sample --for evaluation": EVALUATION,
        "evaluate --judge": f"evaluate runs/new.txt {JUDGED}",
    }.get(name, BASES.get(name))
    bases, ignored = {}, []
    command = COMMANDS.get(name)
    columns = COLUMNS if command is not None and "--label" in options_of(command) else []
    for case in [*CASES[name], *((COMPANY.get(name, ""), case) for case in columns)]:
        company, words = ("", case) if isinstance(case, str) else case
        if words.split()[0] in NOT_THERE.get(name, ()):
            words = f"{words.split()[0]} nothing"
        line = f"{base} {company}".strip()
        if company.startswith("BASE="):
            line = company.removeprefix("BASE=")
        if line not in bases:
            bases[line] = outcome(line)
        found = outcome(f"{line} {words}")
        option = words.split()[0]
        if found == bases[line] or (found[0] == 2 and "Traceback" in found[2]):
            ignored.append(words)
        elif found[0] == 2 and bases[line][0] == 0:
            words_of = " ".join(found[2].split())
            assert words in OTHER_WORDS or any(w in words_of for w in (option, "column", "unknown")), words_of
        else:
            assert bases[line][0] in (0, 1, 2), bases[line][2]
    assert not ignored, f"{name}: nothing changes with {ignored}"
