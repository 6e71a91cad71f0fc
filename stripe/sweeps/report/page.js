"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const names = data.names, points = data.points, objectives = data.objectives;
  const element = (id) => document.getElementById(id);
  const feasible = points.map((_, n) => n).filter((n) => points[n].reason === "");
  const palette = ["#3366a8", "#d1793a", "#4a9a6b", "#b0506f", "#7a64a8", "#8f7a3c", "#3f9aa8", "#a85a3c", "#6b7f2f", "#5d6d9a"];
  const config = { displaylogo: false, responsive: true, toImageButtonOptions: { format: "svg" } };
  const layout = (more) => Object.assign({ margin: { l: 64, r: 16, t: 32, b: 48 }, font: { size: 12 }, hovermode: "closest" }, more);
  const number = (value) => {
    if (value === undefined) return "";
    const size = Math.abs(value);
    return size > 0 && (size < 1e-3 || size >= 1e9) ? value.toExponential(4) : value.toLocaleString("en", { maximumSignificantDigits: 5 });
  };
  const titled = (metric) => data.titles[metric] || metric;
  const label = (n) => Object.entries(points[n].choices).map(([axis, value]) => `${axis}=${value}`).join(" ");
  const tip = (n) => Object.entries(points[n].choices).map(([axis, value]) => `${axis} ${value}`).join("<br>") + "<br>" +
    objectives.map((o) => `<b>${titled(o.metric)}: ${number(points[n].metrics[o.metric])}</b>`).join("<br>");

  function node(tag, text, parent) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  }

  function table(parent, caption, head, rows) {
    const made = node("table", "", parent);
    if (caption) node("caption", caption, made);
    const first = node("tr", "", made);
    head.forEach((cell) => node("th", cell, first));
    rows.forEach((row) => { const line = node("tr", "", made); row.forEach((cell) => node("td", cell, line)); });
  }

  element("title").textContent = data.title;
  element("summary").textContent = `${points.length} points of ${data.machine}, ${feasible.length} feasible; ` +
    Object.entries(data.weights).map(([name, weight]) => `${name} (weight ${weight})`).join(", ");

  function doubt(text) { const made = node("div", text, element("doubts")); made.className = "warn"; return made; }
  if (data.silent.length) doubt(`No effect on any metric: ${data.silent.join(", ")}.`);
  if (data.unverified.length) doubt(`Unverified numbers of the model: ${data.unverified.join(", ")}.`);
  if (data.reversals.length) {
    const made = doubt("A machine that can only be faster takes longer. A click compares the two points.");
    data.reversals.forEach((found) => {
      const line = node("div", "", made), link = node("a", `${found.axis}: ${number((found.factor - 1) * 100)} % slower at ${label(found.faster)}`, line);
      link.href = "#comparison";
      link.onclick = () => { element("a").value = found.slower; element("b").value = found.faster; compare(); };
      if (found.decisions.length) table(line, "", ["decision", "on the slower machine", "on the faster one"], found.decisions);
    });
  }

  const metrics = [...new Set(objectives.map((o) => o.metric).concat(feasible.length ? Object.keys(points[feasible[0]].metrics).sort() : []))];
  for (const [id, standard] of [["across", 0], ["up", 1]]) {
    metrics.forEach((metric) => { node("option", titled(metric), element(id)).value = metric; });
    element(id).value = (objectives[standard] || objectives[0] || { metric: metrics[0] }).metric;
    element(id).onchange = drawFront;
  }

  function drawFront() {
    const x = element("across").value, y = element("up").value;
    const isFront = objectives.length === 2 && objectives.every((o) => [x, y].includes(o.metric)) && x !== y;
    const trace = (chosen, name, color, size, mode) => ({
      x: chosen.map((n) => points[n].metrics[x]), y: chosen.map((n) => points[n].metrics[y]), customdata: chosen,
      text: chosen.map(tip), hoverinfo: "text", type: "scatter", mode, name,
      marker: { color, size }, line: { color, width: 1, shape: "hv" },
    });
    const on = feasible.filter((n) => points[n].front).sort((a, b) => points[a].metrics[x] - points[b].metrics[x]);
    Plotly.react("front", [
      trace(feasible.filter((n) => !points[n].front), "dominated", "#9fb3c8", 7, "markers"),
      trace(on, "not dominated", "#d1793a", 10, isFront ? "lines+markers" : "markers"),
    ], layout({ height: 460, xaxis: { title: { text: titled(x) } }, yaxis: { title: { text: titled(y) } } }), config);
  }

  function layersOf(n) {
    const found = [];
    for (const [workload, layers] of Object.entries(points[n].layers)) {
      layers.forEach(([name, units, start, end, energy, bound, stalls]) => found.push({
        workload, name: names[name], units: units.map((u) => names[u]), start, end, energy, bound: names[bound],
        stalls: Object.fromEntries(Object.entries(stalls).map(([cause, cycles]) => [names[cause], cycles])),
      }));
    }
    return found;
  }

  const sums = (entries) => entries.reduce((all, [key, value]) => { all[key] = (all[key] || 0) + value; return all; }, {});
  const allStalls = (layers) => sums(layers.flatMap((layer) => Object.entries(layer.stalls)));

  function bars(id, title, values, axis) {
    const entries = Object.entries(values).sort((a, b) => b[1] - a[1]).slice(0, 16);
    Plotly.react(id, [{ type: "bar", orientation: "h", x: entries.map((e) => e[1]), y: entries.map((e) => e[0]), marker: { color: palette[0] } }],
      layout({ title: { text: title, font: { size: 13 }, x: 0 }, height: 80 + 24 * Math.max(entries.length, 3), margin: { l: 170, r: 16, t: 32, b: 40 },
        yaxis: { autorange: "reversed" }, xaxis: { title: { text: axis } } }), config);
  }

  function choose(n) {
    element("chosen-title").textContent = `Point: ${label(n)}`;
    element("chosen-facts").replaceChildren();
    const shown = Object.entries(points[n].metrics).filter(([name]) => !name.includes("."));
    table(element("chosen-facts"), "", shown.map(([name]) => name), [shown.map(([, value]) => number(value))]);
    const layers = layersOf(n), workloads = [...new Set(layers.map((layer) => layer.workload))];
    const boxes = layers.flatMap((layer) => layer.units.map((u) => [workloads.length > 1 ? `${layer.workload}: ${u}` : u, layer]));
    const colors = {};
    layers.forEach((layer) => { if (!(layer.name in colors)) colors[layer.name] = palette[Object.keys(colors).length % palette.length]; });
    Plotly.react("timeline", [{
      type: "bar", orientation: "h", base: boxes.map(([, layer]) => layer.start), x: boxes.map(([, layer]) => layer.end - layer.start),
      y: boxes.map(([row]) => row), marker: { color: boxes.map(([, layer]) => colors[layer.name]) },
      text: boxes.map(([, layer]) => `${layer.name}<br>${number(layer.end - layer.start)} cycles, bound by ${layer.bound}`),
      hoverinfo: "text", textposition: "none",
    }], layout({ title: { text: "Timeline", font: { size: 13 }, x: 0 }, barmode: "overlay", height: 110 + 22 * new Set(boxes.map(([row]) => row)).size,
      margin: { l: 120, r: 16, t: 32, b: 40 }, xaxis: { title: { text: "cycles" } }, yaxis: { autorange: "reversed" } }), config);
    bars("energy", "Energy by component", Object.fromEntries(Object.entries(points[n].metrics).filter(([name]) => name.startsWith("energy."))
      .map(([name, value]) => [name.slice(7), value])), "pJ");
    bars("stalls", "Stalls by cause", allStalls(layers), "cycles");
  }

  function drawParallel() {
    const columns = Object.keys(data.axes).map((axis) => ({ name: axis, of: (n) => points[n].choices[axis], values: data.axes[axis].values }))
      .concat(objectives.map((o) => ({ name: o.metric, of: (n) => points[n].metrics[o.metric] })));
    columns.forEach((column) => {
      if (column.values) { column.place = (v) => column.values.length < 2 ? 0.5 : column.values.indexOf(v) / (column.values.length - 1); return; }
      const found = feasible.map(column.of), low = Math.min(...found), high = Math.max(...found);
      column.place = (v) => high > low ? (v - low) / (high - low) : 0.5;
    });
    const lines = (chosen, color, width, name) => {
      const x = [], y = [], text = [];
      chosen.forEach((n) => { columns.forEach((c, i) => { const v = c.of(n); x.push(i); y.push(v === undefined ? null : c.place(v)); text.push(tip(n)); }); x.push(null); y.push(null); text.push(""); });
      return { x, y, text, hoverinfo: "text", type: "scatter", mode: "lines", name, line: { color, width } };
    };
    const notes = columns.flatMap((c, i) => (c.values || []).map((v) => ({ x: i, y: c.place(v), text: String(v), showarrow: false, xanchor: "left", font: { size: 10 } })));
    Plotly.react("parallel", [lines(feasible.filter((n) => !points[n].front), "#c5d1de", 1, "dominated"), lines(feasible.filter((n) => points[n].front), "#d1793a", 2, "not dominated")],
      layout({ height: 400, annotations: notes, xaxis: { tickvals: columns.map((_, i) => i), ticktext: columns.map((c) => c.name), zeroline: false },
        yaxis: { visible: false } }), config);
  }

  function drawSensitivity() {
    const axes = Object.keys(data.axes);
    Plotly.react("sensitivity", objectives.map((o, i) => ({ type: "bar", name: o.metric, x: axes, y: axes.map((axis) => data.sensitivity[o.metric][axis]), marker: { color: palette[i % palette.length] } })),
      layout({ height: 320, barmode: "group", yaxis: { tickformat: ".0%" } }), config);
  }

  function drawLayers() {
    const chosen = [...new Set(Object.values(data.best))];
    for (const [id, title, of] of [["layers-latency", "Cycles by layer", (layer) => layer.end - layer.start], ["layers-energy", "Energy by layer, pJ", (layer) => layer.energy]]) {
      const totals = chosen.map((n) => sums(layersOf(n).map((layer) => [layer.name, of(layer)])));
      const largest = Object.entries(sums(totals.flatMap(Object.entries))).sort((a, b) => b[1] - a[1]).slice(0, 40).map((e) => e[0]);
      Plotly.react(id, largest.map((name, i) => ({ type: "bar", name, x: chosen.map((n) => `point ${n}`), y: totals.map((t) => t[name] || 0), marker: { color: palette[i % palette.length] } })),
        layout({ title: { text: title, font: { size: 13 }, x: 0 }, height: 420, barmode: "stack", showlegend: largest.length <= 12 }), config);
    }
  }

  function compare() {
    const a = Number(element("a").value), b = Number(element("b").value), out = element("comparison");
    out.replaceChildren();
    const differing = Object.keys(points[a].choices).filter((axis) => points[a].choices[axis] !== points[b].choices[axis]);
    node("p", `They differ in ${differing.map((axis) => `${axis} (${points[a].choices[axis]}, ${points[b].choices[axis]})`).join(", ") || "nothing"}.`, out);
    const row = (name, x, y) => [name, number(x), number(y), number(y - x), x ? `${number(100 * (y / x - 1))} %` : ""];
    table(out, "Metrics", ["", "A", "B", "B - A", ""], Object.keys(points[a].metrics).filter((m) => !m.includes(".")).map((m) => row(m, points[a].metrics[m], points[b].metrics[m] || 0)));
    const cycles = (n) => sums(layersOf(n).map((layer) => [layer.name, layer.end - layer.start]));
    const bounds = (n) => Object.fromEntries(layersOf(n).map((layer) => [layer.name, layer.bound]));
    const x = cycles(a), y = cycles(b), boundA = bounds(a), boundB = bounds(b);
    const layers = [...new Set(Object.keys(x).concat(Object.keys(y)))].map((name) => [name, x[name] || 0, y[name] || 0]).filter(([, p, q]) => p !== q)
      .sort((p, q) => Math.abs(q[2] - q[1]) - Math.abs(p[2] - p[1])).slice(0, 25);
    table(out, "Layers that differ, in cycles", ["", "A", "B", "B - A", "", "bound in A", "bound in B"], layers.map(([name, p, q]) => row(name, p, q).concat([boundA[name] || "", boundB[name] || ""])));
    const s = allStalls(layersOf(a)), t = allStalls(layersOf(b));
    const causes = [...new Set(Object.keys(s).concat(Object.keys(t)))].filter((cause) => (s[cause] || 0) !== (t[cause] || 0));
    table(out, "Stalls that differ, in cycles", ["", "A", "B", "B - A", ""], causes.map((cause) => row(cause, s[cause] || 0, t[cause] || 0)));
  }

  for (const id of ["a", "b"]) {
    feasible.forEach((n) => { node("option", `${n}: ${label(n)}`, element(id)).value = n; });
    element(id).onchange = compare;
  }
  element("options").textContent = data.options;
  element("model").textContent = data.rendered.model || "";
  element("list").textContent = data.rendered.list || "";
  if (feasible.length) {
    drawFront(); drawParallel(); drawSensitivity(); drawLayers();
    const first = Object.values(data.best)[0];
    choose(first);
    element("front").on("plotly_click", (event) => choose(event.points[0].customdata));
    element("a").value = first;
    element("b").value = feasible.find((n) => n !== first) === undefined ? first : feasible.find((n) => n !== first);
    compare();
  } else {
    node("p", "No point is feasible:", element("front"));
    table(element("front"), "", ["point", "reason"], points.map((point, n) => [label(n), point.reason]));
  }
  document.body.dataset.ready = "yes";
})();
