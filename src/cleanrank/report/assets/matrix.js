(() => {
  const form = document.getElementById("filters");
  const [words, paper, verdict, data] = ["words", "paper", "verdict", "data"].map((id) => document.getElementById(id));
  const count = document.getElementById("count");
  const sections = [...document.querySelectorAll("section[data-paper]")].map((section) => ({
    section,
    heading: section.querySelector("h2").textContent.toLowerCase(),
    rows: [...section.querySelectorAll("tbody tr")].map((row) => ({ row, text: row.textContent.toLowerCase() })),
  }));
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let all = 0;
    for (const { section, heading, rows } of sections) {
      let mine = 0;
      for (const { row, text } of rows) {
        const fits =
          (!paper.value || section.dataset.paper === paper.value) &&
          (!verdict.value || row.dataset.verdict === verdict.value) &&
          (!data.value || row.dataset.data === data.value) &&
          wanted.every((word) => text.includes(word) || heading.includes(word));
        row.hidden = !fits;
        mine += fits;
      }
      section.hidden = !mine;
      all += mine;
    }
    count.textContent = `${all} figures`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter();
})();
