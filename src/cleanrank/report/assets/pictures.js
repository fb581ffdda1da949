(function () {
  "use strict";
  // Draws the pictures of a page whose data never change: one description each, complete with its data.
  const block = document.getElementById("pictures-data");
  if (!block || !window.vegaEmbed) return;
  const { pictures } = JSON.parse(block.textContent);
  async function draw(picture) {
    const place = document.getElementById(picture.id);
    const box = document.createElement("div");
    box.style.width = place.clientWidth + "px";
    place.append(box);
    await window.vegaEmbed(box, picture.spec, {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false,
      tooltip: { disableDefaultStyle: true },
    });
    box.style.width = "";
  }
  Promise.all(pictures.map(draw)).then(() => { document.documentElement.dataset.drawn = "1"; });
})();
