import cleanrank as cr
from cleanrank.report.estimate_tables import enough_words, estimate_tables, write_estimate_page


def test_an_estimate_from_few_rows_says_so_in_table_and_page(tmp_path):
    truth = cr.make_ranking(30, 5, seed=1)
    noisy = cr.corrupt(truth, rate=0.2, seed=2).data
    sample = cr.sample_gold(noisy, 12, seed=3)
    estimate = cr.estimate_noise(noisy, gold=(sample.row_ids, truth.y[sample.rows]))
    assert not estimate.trusted
    matrix, _ = estimate_tables(estimate)
    assert [row[0] for row in matrix.texts] == [f"true {grade}" for grade in range(5)]
    assert f"{estimate.matrix[0, 0]:.2f} [" in matrix.texts[0][1]
    assert enough_words(estimate).endswith(".")
    page = write_estimate_page(tmp_path / "estimate.html", estimate, name="data.csv").read_text()
    assert "not to be trusted" in page
