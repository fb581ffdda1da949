import pytest

from cleanrank.report.summaries import summarise

from .grids import grid, record


@pytest.fixture(scope="session")
def summary():
    """The made-up grid, summed up against its baseline."""
    return summarise(grid(), baseline="lambdamart", resamples=200, permutations=500)


class Visit:
    """An open page and everything it said or asked for on the way."""

    def __init__(self, browser, path, **options):
        self.said, self.asked = [], []
        self.context = browser.new_context(viewport={"width": 1280, "height": 860}, **options)
        self.page = self.context.new_page()
        self.page.on("console", lambda m: self.said.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.said.append(f"error: {e}"))
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.address = path.resolve().as_uri()
        self.page.goto(self.address)

    def fits(self, width):
        """No sideways scrolling of the page at this width, and no picture that is cut or left out."""
        self.page.set_viewport_size({"width": width, "height": 800})
        cut = self.page.evaluate(
            """width => [...document.querySelectorAll(".plot")].filter(plot => plot.checkVisibility()).filter(
              plot => { const shown = [...plot.children].filter(svg => svg.checkVisibility());
                const right = Math.max(...[...plot.querySelectorAll("text")].map(
                  t => t.getBoundingClientRect()).filter(box => box.width).map(box => box.right));
                return shown.length != 1 || right > width; }).map(plot => plot.id)""",
            width,
        )
        return cut == [] and self.page.evaluate("document.documentElement.scrollWidth") <= width

    def quiet(self):
        """Nothing on the console, and no request but for the page itself."""
        return self.said == [] and self.asked == [self.address]


@pytest.fixture
def visit(browser):
    """Opens a page: visit(path, color_scheme="dark")."""
    opened = []

    def go(path, **options):
        opened.append(Visit(browser, path, **options))
        return opened[-1]

    yield go
    for each in opened:
        each.context.close()


@pytest.fixture
def noted():
    """Two data sets whose cells note the noise of their training labels."""
    made = []
    for dataset, factor in (("d1", 1.0), ("d2", 2.0)):
        for rate in (0.0, 0.1, 0.2):
            chosen = {
                "train_dnoise": rate,
                "train_pnoise": rate * factor,
                "expected_pnoise": rate * factor + 0.01,
            }
            values = {"map": [0.8 - rate * factor, 0.8]}
            noise = "uniform" if rate else "none"
            made.append(record(dataset, 1, noise, rate, values=values, chosen=chosen if rate else {}))
    return summarise(made, resamples=50, permutations=50)
