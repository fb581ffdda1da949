from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.labeling.questions import Answer, Question
from cleanrank.labeling.tasks import (
    TASKS,
    GradeTask,
    PairTask,
    TopKTask,
    ask,
    heap_top_k,
    label_judge,
    make_task,
)
from cleanrank.planning.judges import play, top_k_floor

PAIRED = sorted(set(TASKS) - {"grade"})
orders = st.integers(1, 14).flatmap(lambda n: st.permutations(range(n)))
labels = st.lists(st.integers(0, 3), min_size=1, max_size=12)
ks = st.integers(1, 6)


def set_of(pairs):
    assert len({tuple(pair) for pair in pairs.tolist()}) == len(pairs)
    return {tuple(pair) for pair in pairs.tolist()}


def truly_better(grades, best=None):
    n = len(grades)
    first = range(n) if best is None else best
    return {(a, b) for a in first for b in range(n) if grades[a] > grades[b]}


def pairs_asked(task):
    return [tuple(sorted(answer.question.documents)) for answer in task.answers]


@settings(deadline=None)
@given(grades=orders, k=ks, transitive=st.booleans(), ties=st.booleans())
def test_the_top_k_are_those_of_sorting(grades, k, transitive, ties):
    task = ask(TopKTask(len(grades), k=k, transitive=transitive, ties=ties), grades)
    assert list(task.best) == sorted(range(len(grades)), key=lambda d: -grades[d])[:k]
    assert set_of(task.preferences()) == truly_better(grades, task.best)
    assert len(task.preferences()) == sum(len(grades) - 1 - place for place in range(len(task.best)))


@settings(deadline=None)
@given(grades=labels, k=ks, transitive=st.booleans())
def test_ties_leave_the_preferences_that_are_true(grades, k, transitive):
    task = ask(TopKTask(len(grades), k=k, transitive=transitive), grades)
    assert sorted((grades[d] for d in task.best), reverse=True) == sorted(grades, reverse=True)[:k]
    assert [grades[d] for d in task.best] == sorted((grades[d] for d in task.best), reverse=True)
    assert set_of(task.preferences()) == truly_better(grades, task.best)


@settings(deadline=None)
@given(grades=labels, k=ks, transitive=st.booleans(), ties=st.booleans())
def test_of_fewer_relevant_documents_than_k_fewer_are_found(grades, k, transitive, ties):
    """Only where nothing was called irrelevant may the last of the best be so: nobody was asked."""
    options = {"k": k, "transitive": transitive, "ties": ties, "neither": True}
    judge = label_judge(grades, ties=ties, neither=True)
    task = TopKTask(len(grades), **options)
    while not task.is_done:
        for value in (*task.values, None):
            assert task._with(value).undo() == task
        task = TopKTask(len(grades), answers=task.answers, **options).answer(judge(task.question))
    asked = pairs_asked(task)
    assert len(set(asked)) == len(asked)
    found = sorted((grades[d] for d in task.best), reverse=True)
    if found and not found[-1]:
        assert all(answer.value != 3 for answer in task.answers)
        found = found[:-1]
    assert found == sorted((grade for grade in grades if grade), reverse=True)[:k]
    better, worse = task.preferences().T
    assert all(grades[a] >= grades[b] for a, b in zip(better, worse, strict=True))


@pytest.mark.parametrize(("relevant", "asked", "without"), [(1, 37, 113), (5, 52, 127), (10, 74, 136)])
def test_who_may_say_neither_has_no_floor_and_fewer_questions(relevant, asked, without):
    """The figures of docs/labeling.md."""
    rng = np.random.default_rng(relevant)
    counts = []
    for _ in range(20):
        quality = np.zeros(50, dtype=int)
        quality[rng.permutation(50)[:relevant]] = 1 + rng.permutation(relevant)
        task = ask(TopKTask(50, k=10, ties=False, neither=True), quality)
        better, worse = task.preferences().T
        assert sorted(task.best) == np.flatnonzero(quality).tolist()
        assert (quality[better] > quality[worse]).all()
        assert len(better) == relevant * (50 - relevant) + relevant * (relevant - 1) // 2
        counts.append((len(task.answers), len(ask(TopKTask(50, k=10, ties=False), quality).answers)))
    assert np.mean(counts, axis=0) == pytest.approx([asked, without], rel=0.06)


@settings(deadline=None)
@given(grades=labels.filter(lambda grades: len(grades) > 1), transitive=st.booleans())
def test_all_pairs_give_the_order_of_the_grades(grades, transitive):
    task = ask(PairTask(len(grades), transitive=transitive), grades)
    assert set_of(task.preferences()) == truly_better(grades)
    assert task.grades().tolist() == np.unique(grades, return_inverse=True)[1].tolist()


@settings(deadline=None)
@given(grades=labels)
def test_grades_come_out_as_they_were_given(grades):
    task = ask(GradeTask(len(grades), n_grades=4), grades)
    assert task.grades().tolist() == grades
    assert set_of(task.preferences()) == truly_better(grades)


@settings(deadline=None)
@given(
    kind=st.sampled_from(sorted(TASKS)),
    n=st.integers(1, 8),
    options=st.fixed_dictionaries(
        {"transitive": st.booleans(), "ties": st.booleans(), "neither": st.booleans()}
    ),
    actions=st.lists(st.sampled_from(["answer", "answer", "answer", "skip", "undo"]), max_size=60),
    seed=st.integers(0, 99),
)
def test_any_way_through_a_task(kind, n, options, actions, seed):
    """At every step: undoing gives the task before, resuming from the answers the same, no question twice."""
    rng = np.random.default_rng(seed)
    names = TASKS[kind].__dataclass_fields__
    chosen = {name: value for name, value in options.items() if name in names} | (
        {"k": 3} if "k" in names else {}
    )
    task = make_task(kind, n, **chosen)
    for action in actions:
        if action == "undo":
            if not task.answers:
                with pytest.raises(InvalidInputError, match="needs an answer to take back"):
                    task.undo()
                continue
            task = task.undo()
        elif task.is_done:
            with pytest.raises(InvalidInputError, match="needs an open question"):
                task.answer(task.values[0])
            break
        else:
            after = task.skip() if action == "skip" else task.answer(int(rng.choice(task.values)))
            assert after.undo() == task
            assert after.undo().question == task.question
            task = after
        resumed = make_task(kind, n, answers=task.answers, **chosen)
        assert resumed == task
        assert resumed.question == task.question
        asked = [tuple(sorted(answer.question.documents)) for answer in task.answers]
        assert len(set(asked)) == len(asked)
        assert task.is_done == (task.question is None) == (task.expected_left == 0)
        assert task.is_done or tuple(sorted(task.question.documents)) not in asked
    values = {answer.value for answer in task.answers} - {None}
    assert values <= set(task.values)


@settings(deadline=None, max_examples=50)
@given(kind=st.sampled_from(PAIRED), grades=labels, stop=st.integers(0, 40), seed=st.integers(0, 9))
def test_a_judge_who_errs_is_resumed_anywhere(kind, grades, stop, seed):
    judge = label_judge(grades, 0.3, seed=seed)
    whole = ask(make_task(kind, len(grades)), judge)
    kept = whole.answers[:stop]
    assert ask(make_task(kind, len(grades), answers=kept), judge) == whole


@settings(deadline=None)
@given(grades=st.permutations(range(9)), order=st.randoms())
def test_answers_from_elsewhere_are_not_asked_again(grades, order):
    pairs = list(combinations(range(9), 2))
    order.shuffle(pairs)
    judge = label_judge(grades)
    known = tuple(Answer(Question(pair), judge(Question(pair))) for pair in pairs[:20])
    task = ask(TopKTask(9, known, k=4), judge)
    assert list(task.best) == sorted(range(9), key=lambda d: -grades[d])[:4]
    asked = pairs_asked(task)
    assert len(set(asked)) == len(asked)


@settings(deadline=None, max_examples=20)
@given(grades=st.permutations(range(16)))
def test_transitivity_asks_no_pair_that_follows_and_halving_suffices(grades):
    task = ask(PairTask(16, transitive=True), grades)
    assert len(task.answers) <= sum(int(np.ceil(np.log2(i + 1))) for i in range(16))
    assert len(ask(PairTask(16), grades).answers) == 16 * 15 // 2
    for k in (3, 16):
        fewer, more = (ask(TopKTask(16, k=k, transitive=t), grades) for t in (True, False))
        assert len(fewer.answers) <= len(more.answers)
        assert set(pairs_asked(fewer)) <= set(pairs_asked(more))


def test_only_the_named_pairs_are_asked():
    task = ask(PairTask(5, pairs=[[0, 4], [4, 1], [0, 1]], transitive=True), [2, 0, 0, 0, 1])
    assert pairs_asked(task) == [(0, 4), (1, 4)]
    assert set_of(task.preferences()) == {(0, 4), (4, 1), (0, 1)}
    assert task.grades().tolist() == [2, 0, -1, -1, 1]
    with pytest.raises(InvalidInputError, match="2 of the documents 0 to 4; got '0,5'"):
        PairTask(5, pairs=((0, 5),))


def test_skipped_documents_and_pairs_give_nothing():
    task = GradeTask(3, n_grades=3).answer(2).skip().answer(0)
    assert task.grades().tolist() == [2, -1, 0]
    assert task.preferences().tolist() == [[0, 2]]
    alone = TopKTask(2, k=1).skip()
    assert alone.is_done
    assert alone.preferences().tolist() == []


@pytest.mark.parametrize(
    ("n", "k", "error"), [(12, 4, 0.0), (12, 4, 0.2), (9, 9, 0.1), (7, 1, 0.3), (20, 5, 0.5)]
)
def test_the_compiled_simulation_plays_the_same_heap(n, k, error):
    """Same draws, same order of comparisons: same judgements and the same pairs of every kind."""
    rng = np.random.default_rng(n)
    for _ in range(20):
        grades = rng.integers(0, 3, size=n)
        draws = rng.random((n + k) * 12)
        left = iter(draws)

        def prefers(a, b, grades=grades, left=left):
            u = next(left)
            return u < 0.5 if grades[a] == grades[b] else (grades[a] > grades[b]) == (u >= error)

        best = heap_top_k(n, k, prefers)
        rest = [d for d in range(n) if d not in best]
        kinds = [np.sign(grades[a] - grades[b]) for i, a in enumerate(best) for b in (*best[i + 1 :], *rest)]
        out = np.zeros((1, 4), dtype=np.int64)
        play(grades[None], k, error, draws, out)
        judged = len(draws) - len(list(left))
        assert out[0].tolist() == [judged, kinds.count(1), kinds.count(-1), kinds.count(0)]


@pytest.mark.parametrize(
    ("n", "k", "comparisons"), [(50, 10, 151), (120, 10, 261), (50, 5, 92), (152, 20, 499)]
)
def test_the_heap_of_an_exact_judge_compares_as_often_as_it_should(n, k, comparisons):
    """The published means count pairs that come up again; the task asks each pair once."""
    rng = np.random.default_rng(5)
    counts = []
    for _ in range(100):
        place = rng.permutation(n).tolist()
        seen = []

        def prefers(a, b, place=place, seen=seen):
            seen.append((min(a, b), max(a, b)))
            return place[a] > place[b]

        heap_top_k(n, k, prefers)
        counts.append((len(seen), len(set(seen))))
        if len(counts) <= 3:
            assert len(ask(TopKTask(n, k=k), place).answers) == len(set(seen))
    compared, asked = np.mean(counts, axis=0)
    assert compared == pytest.approx(comparisons, rel=0.02)
    assert TopKTask(n, k=k).expected_left == pytest.approx(asked, rel=0.05)


@pytest.mark.parametrize("relevant", [1, 2, 5, 10])
def test_the_floor_of_a_perfect_judge_without_ties_and_none_with_them(relevant):
    rng = np.random.default_rng(relevant)
    for _ in range(3):
        grades = rng.permutation((np.arange(50) < relevant).astype(int))
        better, worse = (
            ask(TopKTask(50, k=10, ties=False), label_judge(grades, ties=False, seed=3)).preferences().T
        )
        wrong = (grades[better] < grades[worse]).sum() + (grades[better] == grades[worse]).sum() / 2
        assert wrong / len(better) == pytest.approx(top_k_floor(50, 10, relevant))
        better, worse = ask(TopKTask(50, k=10), grades).preferences().T
        assert (grades[better] > grades[worse]).all()


@pytest.mark.parametrize(
    "task", [TopKTask(40, k=5), PairTask(30, transitive=True), TopKTask(30, k=30, transitive=True)]
)
def test_the_estimate_of_what_is_left_is_right_on_average(task):
    rng = np.random.default_rng(8)
    errors = []
    for _ in range(12):
        whole = ask(task, rng.permutation(task.n_documents))
        for share in (0.0, 0.25, 0.5, 0.75):
            done = int(share * len(whole.answers))
            begun = TASKS[task.kind](task.n_documents, whole.answers[:done], **task.settings)
            errors.append((begun.expected_left - (len(whole.answers) - done)) / len(whole.answers))
    assert abs(np.mean(errors)) < 0.05
    assert np.abs(errors).mean() < 0.15


def test_a_judge_errs_at_the_rate_and_always_answers_the_same():
    grades = [0, 1, 2] * 40
    judge = label_judge(grades, 0.2, seed=1)
    pairs = [Question(pair) for pair in combinations(range(120), 2)]
    truth = label_judge(grades)
    strict = [q for q in pairs if truth(q)]
    wrong = [judge(q) != truth(q) for q in strict]
    assert np.mean(wrong) == pytest.approx(0.2, abs=0.02)
    turned = [Question(q.documents[::-1]) for q in pairs]
    swap = {1: 2, 2: 1, 0: 0}
    assert [judge(q) for q in turned] == [swap[judge(q)] for q in pairs]
    ties = [judge(q) for q in pairs if not truth(q)]
    assert ties.count(0) / len(ties) == pytest.approx(0.8, abs=0.03)
    one = [label_judge(grades, 0.2, seed=s)(Question((1,))) for s in range(600)]
    assert one.count(1) / 600 == pytest.approx(0.8, abs=0.05)
    assert one.count(0) / 600 == pytest.approx(0.1, abs=0.04)
    always_two = np.array([[0, 0, 1.0]] * 3)
    assert label_judge(grades, noise=always_two)(Question((0,))) == 2


def test_wrong_calls_say_what_is_wrong():
    with pytest.raises(UnknownNameError, match=r"unknown task 'topk'. Did you mean 'top-k'"):
        make_task("topk", 3)
    with pytest.raises(UnknownNameError, match="setting of the task 'grade' 'k'"):
        make_task("grade", 3, k=2)
    with pytest.raises(InvalidInputError, match="an answer must be one of 0, 1; got 2"):
        make_task("grade", 3).answer(2)
    with pytest.raises(InvalidInputError, match="must be one of 1, 2; got 0"):
        make_task("pairs", 3, ties=False).answer(0)
    with pytest.raises(InvalidInputError, match="must be one of 0, 1; got True"):
        make_task("grade", 3).answer(True)
    with pytest.raises(InvalidInputError, match="1 of the documents 0 to 2; got '0,1'"):
        make_task("grade", 3, answers=(Answer(Question((0, 1)), 1),))
    with pytest.raises(InvalidInputError, match="2 of the documents 0 to 2; got '1,1'"):
        make_task("top-k", 3, answers=(Answer(Question((1, 1)), 1),))
    for bad in ({"n_documents": 0}, {"n_documents": 2, "k": 0}):
        with pytest.raises(InvalidInputError, match="must be an integer >= 1"):
            make_task("top-k", **bad)
    with pytest.raises(InvalidInputError, match="one grade >= 0 for every document"):
        label_judge([-1, 2])


@settings(deadline=None, max_examples=60)
@given(
    kind=st.sampled_from(PAIRED),
    grades=st.integers(1, 9).flatmap(lambda n: st.permutations(range(n))),
    k=st.integers(1, 9),
    transitive=st.booleans(),
    ties=st.booleans(),
)
def test_an_exact_judge_sorts_with_undo_and_resume_at_every_step(kind, grades, k, transitive, ties):
    n = len(grades)
    options = {"transitive": transitive, "ties": ties} | ({} if kind == "pairs" else {"k": k})
    if kind == "active":
        options |= {"budget": n * n, "error": 0.01}
    judge = label_judge(grades, ties=ties)
    task = make_task(kind, n, **options)
    while not task.is_done:
        for unsaid in (task.answer(task.values[0]), task.skip()):  # a slip, taken back
            assert unsaid.undo() == task
        task = make_task(kind, n, answers=task.answers, **options)  # the process died here
        task = task.answer(judge(task.question))
    asked = pairs_asked(task)
    assert len(set(asked)) == len(asked)
    best = sorted(range(n), key=lambda document: -grades[document])
    if kind == "pairs":
        assert set_of(task.preferences()) == truly_better(grades)
    else:
        assert list(task.best) == best[:k]
        assert set_of(task.preferences()) >= truly_better(grades, best[:k])
