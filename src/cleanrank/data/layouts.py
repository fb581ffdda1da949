"""What is known of the data sets people rank with: layout, published figures, terms, where to get them.

A figure stands here only with the place that published it; what is not known is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass

LETOR3 = "Qin, Liu, Xu, Li 2010 (LETOR, Information Retrieval 13)"
LETOR4 = "Qin, Liu 2013 (LETOR 4.0, arXiv:1306.2597)"
NIU = "Niu et al. 2015, Tab. 1"
SOUR = "Marcuzzi et al. 2022, Tab. 1"
COUNTED = "counted in the complete files"
SAMPLED = "counted in the sample"
YAHOO = "Chapelle, Chang 2011 (Yahoo! Learning to Rank Challenge Overview)"
ISTELLA = "README of the data set (2016)"
TFDS = "TensorFlow Datasets, catalogue page istella"
TIANCHI = "Tianchi, page of the data set"

LETOR_PAGE = "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/"
MSLR_PAGE = "https://www.microsoft.com/en-us/research/project/mslr/"
ISTELLA_PAGE = "http://quickrank.isti.cnr.it/istella-dataset/"
RESEARCH = "research use; accept the terms on the project page"
LETOR_FOLDS = "Fold k trains on parts k, k+1, k+2, validates on k+3 and tests on k+4 (S1..S5, counted round)."
THREE = {"train": ("train.txt",), "validation": ("vali.txt", "valid.txt"), "test": ("test.txt",)}
LETOR_FILES = {
    "train": ("train.txt", "trainingset.txt"),
    "validation": ("vali.txt", "validationset.txt"),
    "test": ("test.txt", "testset.txt"),
}
FIVE_FOLDS = tuple(range(1, 6))


@dataclass(frozen=True)
class Fact:
    """A published figure.

    Attributes:
        what: what is counted: "queries", "documents", "features", "grade 0", "users", ...
        value: the figure.
        source: where it was published.
        part: "all", or the part it holds for: "train", "validation", "test".
        fold: the fold it holds for; None for every fold, or for the union of the test parts of all folds.
    """

    what: str
    value: int
    source: str
    part: str = "all"
    fold: int | None = None


@dataclass(frozen=True)
class Entry:
    """One data set of the catalogue.

    Attributes:
        name: its key.
        title: its full name.
        kind: "letor" for query-document features; "text", "ratings", "behaviours" or "sessions" otherwise.
        folders: where it may lie under the data folder, spellings in order of preference.
        files: part -> file names in order of preference; several names joined by "+" belong together.
        folds: the shipped folds; a set with one split has fold 1 alone, and no folders for folds.
        facts: published figures.
        page: the data set's own page.
        how: how to get it and where to put it.
        terms: licence or terms of use.
        notes: what else one should know.
        aliases: other names.
        columns: the highest feature index, so that all parts get the same width.
        features_used: whether the published number of features leaves out columns that are 0 throughout.
        form: empty for the whole set, else what part or form of it the entry describes.
    """

    name: str
    title: str
    kind: str
    folders: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]
    facts: tuple[Fact, ...]
    page: str
    how: str
    terms: str
    folds: tuple[int, ...] = (1,)
    notes: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    columns: int = 0
    features_used: bool = False
    form: str = ""


def _counts(source: str, part: str = "all", fold: int | None = None, **values: int) -> tuple[Fact, ...]:
    return tuple(Fact(what, value, source, part, fold) for what, value in values.items())


def _grades(source: str, *counts: int) -> tuple[Fact, ...]:
    return tuple(Fact(f"grade {g}", count, source) for g, count in enumerate(counts))


def _letor3(name: str, task: str, year: str, queries: int, *facts: Fact, aliases: tuple[str, ...]) -> Entry:
    original = f"{year}_{name[:2].lower()}_dataset"
    return Entry(
        name=name.lower(),
        title=f"LETOR 3.0 {name} ({task}, TREC {year}, .gov)",
        kind="letor",
        folders=(
            f"{name}/QueryLevelNorm",
            f"Gov/QueryLevelNorm/{original}",
            f"QueryLevelNorm/{original}",
            original,
            name,
        ),
        files=LETOR_FILES,
        folds=FIVE_FOLDS,
        facts=(*_counts(LETOR3, queries=queries, features=64), *facts),
        page=LETOR_PAGE,
        how="Get the Gov part of LETOR 3.0 from the project page and unpack QueryLevelNorm of this set as "
        f"{name}/Fold1..Fold5.",
        terms=RESEARCH,
        notes=(LETOR_FOLDS,),
        aliases=aliases,
        columns=64,
    )


def _letor4(name: str, facts: tuple[Fact, ...], aliases: tuple[str, ...]) -> Entry:
    return Entry(
        name=name.lower(),
        title=f"LETOR 4.0 {name}, supervised ranking, query-level normalised",
        kind="letor",
        folders=(name, f"{name}/QueryLevelNorm", f"LETOR4.0/{name}"),
        files=LETOR_FILES,
        folds=FIVE_FOLDS,
        facts=facts,
        page=LETOR_PAGE,
        how=f"Get {name}.rar (supervised ranking) of LETOR 4.0 from the project page and unpack it as "
        f"{name}/Fold1..Fold5.",
        terms=RESEARCH,
        notes=(LETOR_FOLDS,),
        aliases=aliases,
        columns=46,
    )


def _mslr(name: str, queries: int, documents: int, source: str, notes: tuple[str, ...]) -> Entry:
    short = name.removeprefix("MSLR-")
    return Entry(
        name=name.lower(),
        title=f"Microsoft Learning to Rank {short}",
        kind="letor",
        folders=(name, name.replace("K", "k"), short, f"MSLR/{short}"),
        files=THREE,
        folds=FIVE_FOLDS,
        facts=_counts(source, queries=queries, documents=documents, features=136),
        page=MSLR_PAGE,
        how=f"Get {name}.zip from the project page and unpack it as {name}/Fold1..Fold5.",
        terms=RESEARCH,
        notes=(LETOR_FOLDS, *notes),
        aliases=(short.lower(), name.replace("-WEB", "").lower(), name.replace("-WEB", "-").lower()),
        columns=136,
    )


def _yahoo(n: int, features: int, sizes: Mapping[str, tuple[int, int]], *facts: Fact) -> Entry:
    parts = ("train", "validation", "test")
    spelt = {"train": "train", "validation": "valid", "test": "test"}
    per_part = tuple(
        fact
        for part in parts
        for fact in _counts(YAHOO, part, queries=sizes[part][0], documents=sizes[part][1])
    )
    queries, documents = (sum(size[k] for size in sizes.values()) for k in (0, 1))
    return Entry(
        name=f"yahoo-ltrc-{n}",
        title=f"Yahoo! Learning to Rank Challenge, set {n} (Webscope C14)",
        kind="letor",
        folders=(
            f"Yahoo-LTRC-{n}",
            f"yahoo/set{n}",
            "ltrc_yahoo",
            "Learning to Rank Challenge",
            "yahoo",
            "Yahoo",
        ),
        files={
            part: (
                f"set{n}.{spelt[part]}.txt",
                f"set{n}.{spelt[part]}.txt.gz",
                f"{'vali' if part == 'validation' else part}.txt",
            )
            for part in parts
        },
        facts=(*_counts(YAHOO, queries=queries, documents=documents, features=features), *per_part, *facts),
        page="https://webscope.sandbox.yahoo.com/catalog.php?datatype=c",
        how=f"Ask for C14 at Yahoo! Webscope and put set{n}.train.txt, set{n}.valid.txt and set{n}.test.txt "
        f"into Yahoo-LTRC-{n}.",
        terms="Yahoo! Webscope agreement; accept it on the page",
        notes=(
            "Indices run to 700 over both sets; the published number of features counts those of this set. "
            "An absent value is 0.",
        ),
        aliases=(f"yahoo{n}", f"yahoo-set{n}", f"yahoo-{n}", f"ltrc{n}", *(("yahoo",) if n == 1 else ())),
        columns=700,
        features_used=True,
    )


def _istella(
    name: str, folders: tuple[str, ...], archive: str, facts: tuple[Fact, ...], notes: tuple[str, ...]
) -> Entry:
    without = {part: names for part, names in THREE.items() if part != "validation"}
    return Entry(
        name=name.lower(),
        title=f"{name} LETOR",
        kind="letor",
        folders=folders,
        files=without if name == "Istella" else THREE,
        facts=facts,
        page=ISTELLA_PAGE,
        how=f"Get {archive} from the data set's page and unpack it as {folders[0]}.",
        terms="Istella LETOR Licence Agreement: non-commercial use only",
        notes=("The files hold bytes that are not UTF-8.", *notes),
        aliases=(name.replace("-", "").lower(), *(("istella-full",) if name == "Istella" else ())),
        columns=220,
    )


MQ2008_PARTS = _counts(COUNTED, "train", 1, queries=471, documents=9_630) + _counts(
    COUNTED, "validation", 1, queries=157, documents=2_707
)
OHSUMED_PARTS = _counts(COUNTED, "train", 1, queries=63, documents=9_219) + _counts(
    COUNTED, "validation", 1, queries=21, documents=3_538
)

ENTRIES: tuple[Entry, ...] = (
    _letor4("MQ2007", _counts(LETOR4, queries=1_692, documents=69_623, features=46), ("letor4-mq2007",)),
    _letor4(
        "MQ2008",
        _counts(LETOR4, queries=784, documents=15_211, features=46)
        + _grades(COUNTED, 12_279, 2_001, 931)
        + MQ2008_PARTS
        + _counts(COUNTED, "test", 1, queries=156, documents=2_874),
        ("letor4-mq2008",),
    ),
    Entry(
        name="ohsumed",
        title="LETOR 3.0 OHSUMED, query-level normalised",
        kind="letor",
        folders=("OHSUMED/QueryLevelNorm", "OHSUMED/OHSUMED/QueryLevelNorm", "OHSUMED"),
        files=LETOR_FILES,
        folds=FIVE_FOLDS,
        facts=_counts(LETOR3, queries=106, documents=16_140, features=45)
        + _grades(COUNTED, 11_303, 2_585, 2_252)
        + OHSUMED_PARTS
        + _counts(COUNTED, "test", 1, queries=22, documents=3_383),
        page=LETOR_PAGE,
        how="Get the OHSUMED part of LETOR 3.0 from the project page and unpack it as "
        "OHSUMED/QueryLevelNorm/Fold1..Fold5.",
        terms=RESEARCH + "; the MEDLINE records are those of Hersh et al. 1994",
        notes=(LETOR_FOLDS,),
        aliases=("letor3-ohsumed",),
        columns=45,
    ),
    _letor3(
        "TD2003", "topic distillation", "2003", 50, *_counts(NIU, documents=49_058), aliases=("td-2003",)
    ),
    _letor3("TD2004", "topic distillation", "2004", 75, aliases=("td-2004",)),
    _letor3("NP2003", "named page finding", "2003", 150, aliases=("np-2003",)),
    _letor3("NP2004", "named page finding", "2004", 75, aliases=("np-2004",)),
    _letor3("HP2003", "homepage finding", "2003", 150, aliases=("hp-2003",)),
    _letor3("HP2004", "homepage finding", "2004", 75, aliases=("hp-2004",)),
    _mslr(
        "MSLR-WEB10K",
        10_000,
        1_200_192,
        NIU,
        ("Niu et al. 2015 give shares of grades 0 to 4 as 51.7:32.5:13.3:1.7:.8; counts are not published.",),
    ),
    _mslr(
        "MSLR-WEB30K",
        31_531,
        3_771_125,
        SOUR,
        (
            "Marcuzzi et al. 2022 print label counts that miss the number of documents by 60,000 (grade 4 is "
            "probably 30,435, not 90,435), so they are not checked.",
        ),
    ),
    _yahoo(
        1,
        519,
        {"train": (19_944, 473_134), "validation": (2_994, 71_083), "test": (6_983, 165_660)},
        *_grades(SOUR, 185_192, 254_110, 202_700, 54_473, 13_402),
    ),
    _yahoo(2, 596, {"train": (1_266, 34_815), "validation": (1_266, 34_881), "test": (3_798, 103_174)}),
    _istella(
        "Istella",
        ("Istella/full", "istella-letor/full", "istella/full", "full", "Istella", "istella"),
        "istella-letor.tar.gz",
        _counts(ISTELLA, queries=33_018, features=220)
        + _counts(TFDS, documents=10_454_629)
        + _counts(TFDS, "train", queries=23_219)
        + _counts(TFDS, "test", queries=9_799),
        ("There is no validation part: one is made of training queries.",),
    ),
    _istella(
        "Istella-S",
        (
            "Istella-S/sample",
            "istella-s-letor/sample",
            "istella-s/sample",
            "sample",
            "Istella-S",
            "istella-s-letor",
        ),
        "istella-s-letor.tar.gz",
        _counts(ISTELLA, queries=33_018, documents=3_408_630, features=220)
        + _counts(TFDS, "train", queries=19_245)
        + _counts(TFDS, "validation", queries=7_211)
        + _counts(TFDS, "test", queries=6_562),
        (),
    ),
    _istella(
        "Istella-X",
        ("Istella-X", "istella-X", "istella-x"),
        "istella-X.tar.gz",
        _counts(SOUR, queries=10_000, documents=26_791_447, features=220)
        + _counts(TFDS, "train", queries=6_000)
        + _counts(TFDS, "validation", queries=2_000)
        + _counts(TFDS, "test", queries=2_000),
        (
            "Marcuzzi et al. 2022 print label counts that miss the number of documents by 270,000 (grade 0 "
            "is probably 26,745,076, not 26,475,076), so they are not checked.",
        ),
    ),
    Entry(
        name="mslr-sample",
        title="Small parts of Microsoft's web-search set (fold 1)",
        kind="letor",
        folders=("MSLR-sample", "mslr-sample"),
        files={
            "train": ("rankeval_msn1_fold1/msn1.fold1.train.5k.txt+martinpetlus/train.txt",),
            "test": ("rankeval_msn1_fold1/msn1.fold1.test.5k.txt+martinpetlus/test.txt",),
        },
        facts=_counts(SAMPLED, queries=110, documents=12_408, features=136)
        + _counts(SAMPLED, "train", queries=54, documents=6_063)
        + _counts(SAMPLED, "test", queries=56, documents=6_345)
        + _grades(SAMPLED, 6_739, 3_748, 1_635, 203, 83),
        page=MSLR_PAGE,
        how="Take msn1.fold1.{train,test}.5k.txt from rankeval's test data and train.txt, test.txt from "
        "martinpetlus/LearningToRank, and put them into MSLR-sample/rankeval_msn1_fold1 and "
        "MSLR-sample/martinpetlus.",
        terms="Microsoft Research: non-commercial research",
        notes=(
            "There is no validation part: one is made of training queries.",
            "The last query of each 5k file (631 in train, 643 in test) is cut off after 5,000 lines.",
        ),
        aliases=("mslr_sample", "mslrsample"),
        columns=136,
        form="a sample",
    ),
    Entry(
        name="20-newsgroups",
        title="20 Newsgroups, by date",
        kind="text",
        folders=(".", "20news", "20news-bydate", "20newsgroups"),
        files={"all": ("20news-bydate.tar.gz", "20news-bydate-train+20news-bydate-test")},
        facts=_counts("page of the data set (J. Rennie)", documents=18_846, groups=20)
        + _counts("page of the data set (J. Rennie)", "train", documents=11_314)
        + _counts("page of the data set (J. Rennie)", "test", documents=7_532),
        page="http://qwone.com/~jason/20Newsgroups/",
        how="Get 20news-bydate.tar.gz from the page and put it into the data folder as it is.",
        terms="public postings collected by K. Lang; no licence is stated",
        notes=(
            "A group is a query; a document is relevant to the group it was posted in (Haddad 2022).",
            "The list of a group holds the documents of all groups. Headers, footers and quotes are left "
            "out; validation documents are taken out of the training ones.",
        ),
        aliases=("20news", "20newsgroups", "newsgroups", "20 newsgroups"),
    ),
    Entry(
        name="movielens-100k",
        title="MovieLens 100K",
        kind="ratings",
        folders=("ml-100k", "MovieLens-100K", "movielens/ml-100k"),
        files={"all": ("u.data",)},
        facts=_counts("README of the data set (GroupLens)", ratings=100_000, users=943, items=1_682),
        page="https://grouplens.org/datasets/movielens/100k/",
        how="Get ml-100k.zip from the page and unpack it as ml-100k.",
        terms="GroupLens: research use, no redistribution and no commercial use without permission",
        notes=("A user is a query; the movies the user rated are its documents, ratings run from 1 to 5.",),
        aliases=("ml-100k", "ml100k", "movielens", "movielens100k"),
    ),
    Entry(
        name="taobao",
        title="Taobao UserBehavior",
        kind="behaviours",
        folders=("taobao", "Taobao", "UserBehavior", "taobao-sample"),
        files={"all": ("UserBehavior.csv", "UserBehavior.csv.gz")},
        facts=_counts(TIANCHI, rows=100_150_807, users=987_994, items=4_162_024, categories=9_439),
        page="https://tianchi.aliyun.com/dataset/dataDetail?dataId=649",
        how="Get UserBehavior.csv.zip from the page and unpack it as taobao/UserBehavior.csv.",
        terms="terms of Alibaba Tianchi; read them on the page",
        notes=("Wu et al. 2022 keep 981,023 users with more than 3 page views, 1,962,046 sequences.",),
        aliases=("userbehavior",),
    ),
    Entry(
        name="tmall",
        title="Tmall, IJCAI-15 repeat buyers",
        kind="behaviours",
        folders=("tmall", "Tmall", "tmall/data_format1", "tmall-sessions"),
        files={"all": ("user_log_format1.csv", "train_sessions.jsonl+test_prefix_target.jsonl")},
        facts=(),
        page="https://tianchi.aliyun.com/dataset/dataDetail?dataId=42",
        how="Get data_format1.zip from the page and unpack it as tmall.",
        terms="terms of Alibaba Tianchi; read them on the page",
        notes=("Wu et al. 2022 keep 423,784 users, 847,568 sequences.",),
        aliases=("ijcai-15", "ijcai15"),
    ),
    Entry(
        name="alipay",
        title="Alipay shopping behaviour, IJCAI-16",
        kind="behaviours",
        folders=("alipay", "Alipay"),
        files={"all": ("ijcai2016_taobao.csv",)},
        facts=(),
        page="https://tianchi.aliyun.com/dataset/dataDetail?dataId=53",
        how="Get ijcai2016_taobao.csv from the page and put it into alipay.",
        terms="terms of Alibaba Tianchi; read them on the page",
        notes=(
            "Wu et al. 2022 keep 498,308 users, 996,616 sequences, from July to November 2015.",
            "The figures of the raw file are not published in the papers.",
        ),
        aliases=("ijcai-16", "ijcai16"),
    ),
)

# A sample or another form of a set that is not complete: what its own makers or papers count.
FORMS: Mapping[str, tuple[str, tuple[Fact, ...]]] = {
    "taobao-sample": (
        "a sample: the first users of the file",
        _counts(SAMPLED, rows=4_321, users=43, items=3_276),
    ),
    "tmall-sessions": (
        "another form: sessions of item ids, without users and times",
        (
            Fact("training samples", 351_268, "published figures of session recommendation"),
            Fact("test samples", 25_898, "published figures of session recommendation"),
            Fact("items", 40_727, "counted in the files"),
            Fact("clicks", 416_554, "counted in the files"),
            Fact("sessions", 65_286, "counted in the files", "train"),
        ),
    ),
}

CATALOGUE: Mapping[str, Entry] = {entry.name: entry for entry in ENTRIES}
