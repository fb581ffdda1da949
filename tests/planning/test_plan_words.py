from cleanrank.planning import plan_labels


def test_the_report_marks_the_recommendation_and_lists_all_ways():
    found = plan_labels(5000, cost=0.1)
    lines = repr(found).splitlines()
    marked = [li for li in lines if li.endswith("  recommended")]
    assert len(marked) == 1
    assert marked[0].startswith(found.recommended)
    for option in found.options:
        line = next(li for li in lines if li.startswith(option.name))
        assert f"{option.pnoise:.3f}" in line
        assert option.problem in line
    assert f"Recommended: {found.recommended}" in lines
    assert "Assumptions:" in lines
