"""Models in LightGBM's text format: checks before LightGBM reads one, and sums of several.

LightGBM trusts the text: one that was cut short ends the process, and a tree whose nodes point at each other
makes it look for a leaf for ever.
"""

import re
from collections.abc import Sequence
from functools import partial

import numpy as np

from cleanrank.errors import BadFileError, error_text
from cleanrank.types import IntArray

# What a tree lists of each of its splits; of each of its leaves it lists leaf_value.
OF_SPLITS = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
CATEGORICAL = 1  # this bit of decision_type
# What a tree lists in units of the score; the last two are those of linear trees.
OF_SCORE = re.compile(r"^((?:leaf_value|internal_value|leaf_const|leaf_coeff)=)(.*)$", re.MULTILINE)
AVERAGED = "\naverage_output\n"


def weighted_sum(texts: Sequence[str], weights: Sequence[float]) -> str:
    """The text of one model whose score is the weighted sum of those of several; the head is the first's."""
    trees: list[str] = []
    for text, weight in zip(texts, weights, strict=True):
        head, *parts = re.split(r"^Tree=\d+\n", text.partition("end of trees")[0], flags=re.MULTILINE)
        weight = weight / len(parts) if AVERAGED in head else weight  # random forests are means of trees
        for part in parts:
            scaled = OF_SCORE.sub(partial(_times, weight), part.rstrip())
            trees.append(f"Tree={len(trees)}\n{scaled}\n\n\n")
    sizes = " ".join(str(len(tree.encode())) for tree in trees)
    head, _, _ = texts[0].replace(AVERAGED, "\n").partition("Tree=0\n")
    head = re.sub(r"^tree_sizes=.*$", f"tree_sizes={sizes}", head, flags=re.MULTILINE)
    return "".join([head, *trees, *texts[0].partition("end of trees")[1:]])


def _times(weight: float, line: re.Match[str]) -> str:
    """A line of numbers, each times a weight, with all digits."""
    return line[1] + re.sub(r"\S+", lambda number: repr(float(number[0]) * weight), line[2])


def check_text(text: bytes, file: str) -> None:
    """Refuses what is not the text of whole trees, each of whose nodes and leaves has one parent."""
    name = f"model file {file!r}"
    if text.partition(b"\n")[0].strip() != b"tree":
        rule = "must be LightGBM's text, which begins with 'tree'"
        raise BadFileError(error_text(name, rule, repr(text[:16])), file)
    if not _is_whole(text):
        rule = "must be whole; got another number of bytes than its head counts"
        raise BadFileError(error_text(name, rule, remedy="Copy or save it again."), file)
    problem = _problem(text)
    if problem:
        rule = f"must hold trees as LightGBM writes them: {problem}"
        raise BadFileError(error_text(name, rule, remedy="Copy or save it again."), file)


def _is_whole(text: bytes) -> bool:
    """Whether a model's trees take as many bytes as its head says, and end where they should."""
    head, _, trees = text.partition(b"\nTree=0\n")
    sizes = re.search(rb"^tree_sizes=([\d ]*)$", head, re.MULTILINE)
    if sizes is None:
        return b"end of trees" in text
    if not sizes[1].strip():
        return b"\nend of trees" in head
    length = sum(int(size) for size in sizes[1].split()) - len(b"Tree=0\n")
    return trees[length:].startswith(b"end of trees")


def _problem(text: bytes) -> str:
    """What is wrong with the trees, in words; empty when nothing is. All trees are checked at once."""
    head, *parts = text.partition(b"\nend of trees")[0].split(b"\nTree=")
    if not parts:
        return ""
    trees = b"\nTree=".join(parts)
    try:
        (last_feature,) = _numbers(re.findall(rb"^max_feature_idx=(.*)$", head, re.MULTILINE))[0]
        leaves, _ = _listed(trees, "num_leaves")
        n_categorical, _ = _listed(trees, "num_cat")
        values, of_value = _listed(trees, "leaf_value")
        listed = [_listed(trees, name) for name in OF_SPLITS]
    except ValueError:
        return "a number in them cannot be read"
    if not len(leaves) == len(n_categorical) == len(parts) or (leaves < 1).any():
        return "a tree does not say how many leaves it has"
    for name, counts, n in [("leaf_value", of_value, leaves)] + [
        (name, counts, leaves - 1) for name, (_, counts) in zip(OF_SPLITS, listed, strict=True)
    ]:
        if len(counts) != len(n) or (counts != n).any():
            return f"a tree has more or fewer numbers in {name} than its leaves need"
    features, thresholds, kinds, left, right = (numbers for numbers, _ in listed)
    if not np.isfinite(values).all():
        return "a leaf has no finite value"
    if (features < 0).any() or (features > last_feature).any():
        return "a split looks at a column that the model does not have"
    tree = np.repeat(np.arange(len(leaves)), (leaves - 1).astype(np.int64))
    category = (kinds.astype(np.int64) & CATEGORICAL) > 0
    if (category & ~((thresholds >= 0) & (thresholds < n_categorical[tree]))).any():
        return "a split looks at a set of categories that its tree does not have"
    if not _one_parent_each(left, right, tree, leaves.astype(np.int64)):
        return "a node or a leaf of a tree has no parent or more than one"
    return ""


def _one_parent_each(left: IntArray, right: IntArray, tree: IntArray, leaves: IntArray) -> bool:
    """Whether every leaf and every node but the root is the child of one node: no walk can go in circles.

    Children are nodes counted from 0, or leaves as -1, -2, ...
    """
    child, parents_tree = np.concatenate([left, right]).astype(np.int64), np.concatenate([tree, tree])
    n = leaves[parents_tree]
    if ((child >= n - 1) | (child < -n) | (child == 0)).any():
        return False
    # Leaf k of a tree stands at its offset + k, node k after the leaves.
    offsets = np.concatenate([[0], np.cumsum(2 * leaves - 1)])
    place = offsets[parents_tree] + np.where(child < 0, -1 - child, n + child)
    parents = np.bincount(place, minlength=offsets[-1])
    roots = (offsets[:-1] + leaves)[leaves > 1]
    expected = np.ones(len(parents), dtype=np.int64)
    expected[roots] = 0
    expected[offsets[:-1][leaves == 1]] = 0  # a leaf that is a tree
    return bool((parents == expected).all())


def _listed(trees: bytes, name: str) -> tuple[IntArray, IntArray]:
    """The numbers that all trees list under a name, one after the other, and how many each has."""
    return _numbers(re.findall(rb"^" + name.encode() + rb"=(.*)$", trees, re.MULTILINE))


def _numbers(lines: list[bytes]) -> tuple[IntArray, IntArray]:
    words = [line.split() for line in lines]
    counts = np.array([len(line) for line in words], dtype=np.int64)
    return np.array([word for line in words for word in line], dtype=np.float64), counts
