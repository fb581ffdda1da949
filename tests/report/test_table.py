import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.report.table import Cell, Table, many, number, templates
from cleanrank.types import plain

NASTY = "</td><script>alert(\"1\")</script><img src=x onerror='f()'>&"


def test_columns_line_up():
    table = Table(("a", "b"), [("xx", "1"), ("y", "22")])
    assert table.text() == "a    b\nxx   1\ny   22"
    assert str(Table(("a", "b"), [("xx", "1")], align="rl", notes=["n"])) == " a  b\nxx  1\nn"


def test_head_and_texts_are_plain():
    table = Table(("a", "b"), [("x", number(0.5, ".1f"))])
    assert (list(table.head), table.texts) == (["a", "b"], [["x", "0.5"]])


def test_rows_must_fit_the_head():
    with pytest.raises(InvalidInputError, match="a cell for each of 1 headings; got 2"):
        Table(("a",), [("x", "y")])


@pytest.mark.parametrize("value", [None, float("nan")])
def test_no_number_is_a_dash_that_sorts_as_nothing(value):
    cell = number(value)
    assert (cell.text, cell.value) == ("–", None)
    assert "none" in cell.kind


def test_numbers_have_a_real_minus():
    assert number(-0.25, "+.2f").text == "−0.25"


def test_records_become_rows():
    records = [{"name": "x", "at": {"low": 0.25}}, {"name": None, "at": {"low": None}}]
    columns = [("who", "name"), ("from", "at.low", ".1%", "where it begins", "never")]
    table = Table.of(records, columns, caption="c")
    assert table.texts == [["x", "25.0%"], ["–", "never"]]
    assert (table.align, table.explained, table.caption) == ("lr", {"from": "where it begins"}, "c")


def test_columns_can_be_left_out():
    table = Table(("a", "b", "c"), [("x", "1", "w")], align="lrl", explained={"b": "?"})
    assert table.without("b", "z").text() == "a  c\nx  w"


def test_markdown_cannot_be_broken_by_a_cell_or_a_note():
    table = Table(("a", "b"), [("x|y", "<b>\n")], notes=["p < .05 against <b>"])
    assert table.markdown() == "| a | b |\n| :-- | --: |\n| x\\|y | &lt;b>  |\n\np < .05 against &lt;b>\n"
    assert Table(("a",), [], notes=["one", "two"]).markdown().endswith("\n\n- one\n- two\n")


def test_latex_is_escaped():
    text = Table(("a_b", "n"), [("R & D", "10%")], notes=["why"]).latex()
    assert text.startswith(
        "\\begin{tabular}{lr}\n\\toprule\na\\_b & n \\\\\n\\midrule\nR \\& D & 10\\% \\\\\n"
    )
    assert text.endswith("\\end{tabular}\n% why\n")


def test_a_page_heads_columns_and_rows():
    table = Table(("A", "B"), [["x", Cell("1.0", 1.0)]], caption="c & d", explained={"A": "why <a>"})
    markup = table.html()
    assert markup.count('scope="col"') == 2
    assert '<th scope="row">x</th>' in markup
    assert '<td class="num">1.0</td>' in markup
    assert "<caption><span>c &amp; d</span></caption>" in markup
    assert 'title="why &lt;a&gt;"' in markup


def test_a_page_escapes_every_part_of_a_table():
    table = Table(
        (NASTY, "b"),
        [[Cell(NASTY, NASTY, NASTY), NASTY]],
        caption=NASTY,
        explained={NASTY: NASTY},
        row_kinds=[NASTY],
    )
    markup = table.html()
    assert "<script" not in markup
    assert "<img" not in markup
    assert "onerror='" not in markup
    assert markup.count("&lt;script&gt;") == 8


def test_templates_show_tables_as_markup_and_escape_the_rest():
    shown = templates().from_string("{{ t }}{{ words }}").render(t=Table(("a",), [("<",)]), words=NASTY)
    assert '<th scope="row">&lt;</th>' in shown
    assert "<script" not in shown


def test_one_and_many():
    assert many(0, "row") == "0 rows"
    assert many(1, "query", "queries") == "1 query"


def test_plain_values_hold_no_nan_and_no_tuple():
    assert plain({1: (float("inf"), "x")}) == {"1": [None, "x"]}
