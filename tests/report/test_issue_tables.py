import numpy as np

import cleanrank as cr
from cleanrank.report.issue_tables import by_grade_table, worst_table


def test_issues_are_counted_by_given_grade():
    data = cr.from_arrays(np.zeros((4, 1)), [0, 0, 0, 2], group=[4])
    issues = cr.LabelIssues.of(data, doubt=[0.9, 0.1, 0.2, 0.8], is_label_issue=[True, False, False, True])
    assert by_grade_table(issues).texts == [["0", "3", "1", "33.33%"], ["2", "1", "1", "100.00%"]]


def test_texts_of_the_rows_stand_beside_their_reasons():
    rows = [
        {
            "row_id": 3,
            "query_id": "q",
            "doc_id": "d",
            "given_label": 2,
            "suggested_label": 0,
            "doubt": 0.5,
            "why": "-",
        }
    ]
    table = worst_table(rows, texts={"title": ["a page"]})
    assert "title" in table.head
    assert "a page" in table.texts[0]
