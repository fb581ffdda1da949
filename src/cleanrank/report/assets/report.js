(function () {
  "use strict";
  const root = document.documentElement;

  // Light and dark: the system decides until the reader does. A page opened from a file may have no storage.
  const theme = document.getElementById("theme");
  const wants = window.matchMedia("(prefers-color-scheme: dark)");
  const remembered = { get() { try { return localStorage.getItem("cleanrank-theme"); } catch { return null; } },
    set(v) { try { localStorage.setItem("cleanrank-theme", v); } catch { /* not kept, then */ } } };
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : wants.matches);
  function nameTheme() {
    const other = dark() ? "light" : "dark";
    theme.textContent = other === "dark" ? "Dark" : "Light";
    theme.setAttribute("aria-label", "Switch to " + other + " colours");
  }
  if (["light", "dark"].includes(remembered.get())) root.dataset.theme = remembered.get();
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    remembered.set(root.dataset.theme);
    nameTheme();
  });
  wants.addEventListener("change", nameTheme);
  nameTheme();

  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  // Sorting: numbers by size, words by the reader's language; cells without a value stay last either way.
  function sortBy(table, column, up) {
    const body = table.tBodies[0];
    const value = (row) => {
      const cell = row.cells[column];
      const raw = cell.dataset.v ?? (cell.classList.contains("none") ? "" : cell.textContent);
      return { empty: raw === "" && cell.classList.contains("none"), text: raw, number: raw === "" ? NaN : Number(raw) };
    };
    const rows = [...body.rows].map((row) => [row, value(row)]);
    const numeric = rows.every(([, v]) => v.empty || !Number.isNaN(v.number));
    rows.sort(([, a], [, b]) => {
      if (a.empty || b.empty) return a.empty - b.empty;
      const order = numeric ? a.number - b.number : a.text.localeCompare(b.text, "en", { numeric: true });
      return up ? order : -order;
    });
    for (const [row] of rows) {
      row.classList.remove("first");
      for (const cell of row.querySelectorAll(".again")) cell.classList.remove("again");
      body.append(row);
    }
  }
  for (const table of document.querySelectorAll(".scroll table")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const was = head.getAttribute("aria-sort");
        const up = was === "none" ? !head.classList.contains("num") : was === "descending";
        for (const other of heads) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        sortBy(table, column, up);
      });
    });
  }

  // Pictures: those with data by choice follow the controls, the others are drawn once.
  const block = document.getElementById("charts");
  if (!block || !window.vegaEmbed) return;
  const { charts } = JSON.parse(block.textContent);
  const measure = document.getElementById("measure");
  const level = document.getElementById("level");
  const outliers = document.getElementById("outliers");
  const legend = [...document.querySelectorAll(".legend button")];
  const turn = new Map();

  function chosen(chart) {
    const keys = { bars: () => measure.value + " | " + (level ? level.value : chart.only), history: () => outliers.value };
    const key = chart.kind in keys ? keys[chart.kind]() : measure.value;
    const all = ["traces", "history"].includes(chart.kind);  // their series are no methods
    const shown = new Set(legend.filter((b) => b.getAttribute("aria-pressed") === "true").map((b) => b.dataset.method));
    const place = document.getElementById(chart.id);
    const figure = place.closest("figure");
    figure.hidden = !(key in chart.data);
    if (figure.hidden) return null;
    const spec = structuredClone(chart.spec);
    spec.data = { values: chart.data[key].filter((d) => all || shown.has(d.method)) };
    if (chart.step) spec.height = chart.step * Math.max(1, new Set(spec.data.values.map((d) => d.method)).size);
    if (chart.measured) figure.querySelector(".measure").textContent = " · " + key.replace(" | ", " · ");
    place.setAttribute("aria-label", chart.words[key]);
    return spec;
  }
  async function draw(chart) {
    const spec = chart.data ? chosen(chart) : chart.spec;
    if (!spec) return;
    const place = document.getElementById(chart.id);
    const mine = (turn.get(chart.id) || 0) + 1;
    turn.set(chart.id, mine);
    const box = document.createElement("div");
    box.style.width = place.clientWidth + "px";
    place.append(box);
    const made = await window.vegaEmbed(box, spec, {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false,
      tooltip: { disableDefaultStyle: true },
    });
    if (turn.get(chart.id) !== mine) { made.finalize(); box.remove(); return; }
    for (const old of [...place.children]) if (old !== box) old.remove();
    box.style.width = "";
  }
  async function drawAll(which) {
    await Promise.all(charts.filter((c) => !which || c.kind === which).map(draw));
    root.dataset.drawn = String(Number(root.dataset.drawn || 0) + 1);
  }
  function nameMeasure() {
    document.getElementById("convention").textContent = measure.selectedOptions[0].dataset.words;
  }
  if (measure) measure.addEventListener("change", () => { nameMeasure(); drawAll(); });
  if (outliers) outliers.addEventListener("change", () => drawAll("history"));
  if (level) level.addEventListener("change", () => drawAll("bars"));
  for (const button of legend) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") === "true" ? "false" : "true");
      drawAll();
    });
  }
  drawAll();
})();
