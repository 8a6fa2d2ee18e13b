// SPDX-License-Identifier: Apache-2.0
// Draws the figures one after the other, and leaves out the devices that are not chosen.
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const boxes = [...document.querySelectorAll("#devices input")];
  const showAllButton = { name: "all", title: "Show all", icon: Plotly.Icons.home, click: (place) => showAll(place) };
  // Named one by one, for some of Plotly's would send the chart elsewhere; nothing is to leave this page.
  const options = {
    responsive: true, displaylogo: false, doubleClick: false, doubleClickDelay: 500, plotlyServerURL: "",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", showAllButton]],
  };

  // What is left of a figure with the chosen devices only; without a choice all of it.
  function chosenOf(figure) {
    const chosen = new Set(boxes.filter((box) => box.checked).map((box) => Number(box.value)));
    if (chosen.size === boxes.length) return figure;
    const data = [];
    for (const trace of figure.data) {
      const { device, devices, fields } = trace.meta || {};
      if (devices !== undefined) {
        const left = { ...trace };
        for (const field of fields) left[field] = trace[field].filter((_, i) => chosen.has(devices[i]));
        data.push(left);
      } else if (device === undefined || chosen.has(device)) {
        data.push({ ...trace });
      }
    }
    const layout = { ...figure.layout };
    if (layout.meta && layout.meta.lane) {
      layout.height -= layout.meta.lane * (boxes.length - chosen.size);
      layout.yaxis = { ...layout.yaxis, range: [chosen.size - 0.5, -0.5] };
      const named = new Set();
      for (const trace of data) {
        trace.showlegend = !named.has(trace.name);
        named.add(trace.name);
      }
    }
    return { data, layout };
  }

  // What a double click does: Plotly's own would come back to where a figure was when it was drawn last.
  function showAll(place) {
    const name = place.id.replace("plot-", "");
    const update = {};
    for (const axis of ["xaxis", "yaxis"]) {
      const { range, fixedrange } = figures[name].layout[axis];
      if (fixedrange) continue;
      if (range) update[axis + ".range"] = [...range];
      else update[axis + ".autorange"] = true;
    }
    Plotly.relayout(place, update);
  }

  function draw(name) {
    const place = document.getElementById("plot-" + name);
    const { data, layout } = chosenOf(figures[name]);
    place.style.height = layout.height + "px";
    // Plotly writes into what it is given; what zooming has changed is kept by uirevision.
    return Plotly.react(place, data, { ...structuredClone(layout), uirevision: "kept" }, options);
  }

  const nextFrame = () => new Promise((resolve) => setTimeout(resolve, 0));

  async function begin() {
    await drawAll();
    for (const name of Object.keys(figures)) {
      const place = document.getElementById("plot-" + name);
      place.on("plotly_doubleclick", () => showAll(place));
    }
    document.documentElement.dataset.drawnMilliseconds = Math.round(performance.now());
  }

  let timesDrawn = 0;

  async function drawAll() {
    for (const name of Object.keys(figures)) {
      await draw(name);
      await nextFrame();
    }
    document.documentElement.dataset.timesDrawn = ++timesDrawn;
  }

  for (const box of boxes) box.addEventListener("change", drawAll);
  for (const button of document.querySelectorAll("#devices button")) {
    button.addEventListener("click", () => {
      for (const box of boxes) box.checked = button.value === "all";
      drawAll();
    });
  }
  begin();
})();
