// Draws the charts of a report from the data in the page. Curves and scatter plots are uPlot's, maps are drawn here.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const state = window.__nandscape;
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const COLOURS = 8;
  // Runs often coincide (a write amplification of 1), so that the dashes of the later let the earlier show through.
  const DASHES = [[], [9, 4], [3, 3], [12, 3, 3, 3], [6, 6], [2, 5], [14, 5], [8, 3, 2, 3, 2, 3]];
  const colour = (run) => css("--c" + (run.colour % COLOURS));
  // A line of the legend as it is in the chart, since colours come again with other dashes.
  const swatch = (ink, [on, off] = []) =>
    on ? `repeating-linear-gradient(90deg, ${ink} 0 ${on / 2}px, transparent ${on / 2}px ${(on + off) / 2}px)` : ink;
  // Lines of the data name their colour themselves, the same in every chart.
  const style = ({ label, ink, dash }) => ({ label, stroke: css("--" + ink), dash: DASHES[(dash ?? 0) % DASHES.length] });
  const dash = (place, run) => DASHES[(place + Math.floor(run.colour / COLOURS)) % DASHES.length];

  // ---- numbers ------------------------------------------------------------------------------------------------------------
  const digits = (v) => {
    const a = Math.abs(v);
    const text = a >= 1000 ? v.toFixed(0) : a >= 100 ? v.toFixed(1) : a >= 10 ? v.toFixed(2) : a >= 0.01 || a === 0 ? v.toFixed(3) : v.toPrecision(2);
    return text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : text;
  };
  const scaled = (v, units) => {
    let best = units[0];
    for (const unit of units) if (Math.abs(v) >= unit[1] * 0.9999) best = unit;
    return digits(v / best[1]) + (best[0] ? " " + best[0] : "");
  };
  const KIB = 1024;
  const bytes = (v) => scaled(v, [["B", 1], ["KiB", KIB], ["MiB", KIB ** 2], ["GiB", KIB ** 3], ["TiB", KIB ** 4]]);
  const nanos = (v) => (v === 0 ? "0" : scaled(v, [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]]));
  const count = (v) => scaled(v, [["", 1], ["k", 1e4], ["M", 1e6], ["G", 1e9]].map(([n, at]) => [n, n === "k" ? 1e3 : at]));
  const whole = (v) => Math.round(v).toLocaleString("en-US");
  const mib = (v) => bytes(v * KIB ** 2);
  const or = (show) => (u, v) => (v == null ? "–" : show(v));
  // Of a line its last value, where nothing is pointed at; or the one at a place that matters more.
  const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
  const known = (values) => values.filter((v) => v != null);
  // Of points something that stands for all of them.
  const orAll = (show, all) => (u, v, i, at) => (at == null ? all(known(u.data[i])) : or(show)(u, v));
  const orLast = (show, place) => (u, v, i, at) =>
    or(show)(u, at == null ? u.data[i][u.data[0].indexOf(place)] ?? known(u.data[i]).at(-1) : v);

  // ---- axes ---------------------------------------------------------------------------------------------------------------
  // Ticks at round binary sizes: decimal steps of MiB would read 97.66 MiB.
  const binarySplits = (room) => (u, axis, min, max) => {
    const most = Math.max(2, Math.floor((axis === 0 ? u.bbox.width : u.bbox.height) / devicePixelRatio / room));
    let step = 2 ** Math.ceil(Math.log2((max - min) / most || 1));
    // The next power of two may leave half of the room empty; one and a half of the lower fills it.
    if ((max - min) / (step * 0.75) <= most) step *= 0.75;
    const out = [];
    for (let at = Math.ceil(min / step) * step; at <= max; at += step) out.push(at);
    return out;
  };
  const axis = (extra) => ({
    stroke: css("--soft"),
    font: "11px system-ui, sans-serif",
    labelFont: "11px system-ui, sans-serif",
    labelSize: 18,
    grid: { stroke: css("--grid"), width: 1 },
    ticks: { stroke: css("--grid"), width: 1, size: 4 },
    ...extra,
  });
  const valueAxis = (show, splits) => axis({ values: (u, at) => at.map((v) => (v == null ? "" : show(v))), splits, size: 66 });
  // From `floor` (0, or 1 for a write amplification) up, with some air. Logarithms start at a power of ten below the smallest.
  const range = (floor, log) => (u, min, max) => {
    if (min == null || max == null) return log ? [1, 10] : [0, 1];
    if (log) {
      const bottom = min > 0 ? min : max > 0 ? max / 1e3 : 0.1;
      const low = 10 ** Math.floor(Math.log10(bottom));
      return [low, Math.max(low * 10, max * 1.25)];
    }
    const low = Math.min(floor, min);
    const top = max > low ? max : low + 1;
    return [low === 0 ? 0 : low - (top - low) * 0.04, top + (top - low) * 0.06];
  };
  // A logarithm of 0 is nowhere; such points are left out.
  const positive = (columns) => columns.map((c, i) => (i === 0 ? c : c.map((v) => (v != null && v <= 0 ? null : v))));

  const nearest = (u, series, i) => {
    const column = u.data[series];
    if (series === 0 || column[i] != null) return i;
    for (let d = 1; d < 64; d++) {
      if (column[i - d] != null) return i - d;
      if (column[i + d] != null) return i + d;
    }
    return i;
  };

  // ---- charts -------------------------------------------------------------------------------------------------------------
  const group = (figure) => data.groups[+figure.dataset.group];
  const members = (figure) => group(figure).runs.map((i) => data.runs[i]);

  const skewed = (values) => values.reduce((a, b) => Math.max(a, b), 0) > 20 * median(values);
  // Where phases begin: a line across, with the time.
  const marksOf = (runs, key) => runs.flatMap((run) => (run.phases ?? []).map((phase) => ({ at: phase[key], label: nanos(phase.ns), run })));
  const drawMarks = (marks) => (u) => {
    const { ctx } = u;
    const { left, top, width, height } = u.bbox;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.setLineDash([4 * ratio, 3 * ratio]);
    ctx.lineWidth = ratio;
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    [ctx.textBaseline, ctx.textAlign] = ["top", "left"];
    marks.forEach(({ at, label, ink }, i) => {
      const x = u.valToPos(at, "x", true);
      if (!(x >= left && x <= left + width)) return;
      ctx.strokeStyle = ctx.fillStyle = ink;
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
      const wide = ctx.measureText(label).width;
      const room = x + wide + 4 * ratio < left + width;
      ctx.fillText(label, room ? x + 3 * ratio : x - wide - 3 * ratio, top + (i % 4) * 13 * ratio);
    });
    ctx.restore();
  };
  // Curves of every run over the data written. uPlot wants one x for all, so tables are joined; a run that has no point at an
  // x is drawn through (undefined), one that has no value there is interrupted (null).
  const curves = (columns, show, floor) => (figure, view, log) => {
    const runs = members(figure).filter((run) => run.series?.[columns[view]]?.some((v) => v != null));
    if (!runs.length) return null;
    const joined = uPlot.join(runs.map((run) => [run.series.x, run.series[columns[view]]]));
    return {
      data: joined,
      runs,
      x: { label: group(figure).axis, show: mib, splits: binarySplits(70) },
      show,
      splits: show === bytes ? binarySplits(36) : undefined,
      floor,
      sync: "data-" + figure.dataset.group,
      marks: marksOf(runs, "x").map((mark) => ({ ...mark, ink: colour(mark.run) })),
      // A few stalls would press everything else to the ground.
      log: show === nanos && skewed(joined.slice(1).flat().filter((v) => v > 0)),
    };
  };

  const percentiles = (key) => (figure) => {
    const runs = members(figure).filter((run) => run[key].length);
    if (!runs.length) return null;
    const joined = uPlot.join(runs.map((run) => [run[key].map((p) => p[0]), run[key].map((p) => p[1])]));
    const names = { 0.301: "p50", 1: "p90", 2: "p99", 3: "p99.9", 4: "p99.99", 5: "p99.999", 6: "p99.9999" };
    const at = (v) => names[v] ?? "";
    return { data: joined, runs, x: { label: "percentile", show: at, splits: () => joined[0] }, show: nanos, floor: 0, points: true, log: true };
  };

  const requests = (figure) => {
    const run = data.runs[+figure.dataset.run];
    const { index, rate, ops } = run.requests;
    const only = (op) => rate.map((v, i) => (ops[i] === op ? v : null));
    const columns = [index];
    const series = [];
    for (const [op, label, stroke] of [["W", "write", colour(run)], ["R", "read", css("--soft")]]) {
      if (!ops.includes(op)) continue;
      columns.push(only(op));
      series.push({ label, stroke, value: orAll(digits, (values) => `${digits(median(values))} MB/s, median`) });
    }
    // The same scale in every panel of the group.
    const all = members(figure).flatMap((r) => (r.requests ? r.requests.rate.filter((v) => v > 0) : []));
    const [low, high] = all.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, 0]);
    const middle = [...all].sort((a, b) => a - b)[all.length >> 1];
    const last = Math.max(...members(figure).map((r) => (r.requests ? r.requests.index.at(-1) : 0)));
    return {
      data: columns, series, show: (v) => digits(v), x: { label: "request", show: count, range: [0, Math.max(1, last)] },
      bounds: [low, high], floor: 0, log: high > 8 * middle,
    };
  };

  const OPS = { W: ["writes", "--c0"], R: ["reads", "--c1"], D: ["discards", "--c2"], Z: ["write zeroes", "--c3"] };
  const addresses = (figure) => {
    const { request, offset, ops } = data.workloads[+figure.dataset.workload];
    const columns = [request];
    const series = [];
    for (const [op, [label, stroke]] of Object.entries(OPS)) {
      if (!ops.includes(op)) continue;
      columns.push(offset.map((v, i) => (ops[i] === op ? v : null)));
      series.push({ label, stroke: css(stroke), value: orAll(bytes, (values) => count(values.length)) });
    }
    return { data: columns, series, show: bytes, splits: binarySplits(36), x: { label: "request", show: count }, floor: 0 };
  };

  const workingSet = (figure) => {
    const { end, window, so_far, each } = data.workloads[+figure.dataset.workload];
    const lines = [["since the start", css("--c0")], [`in ${each} requests`, css("--c1")]];
    return {
      data: [end, so_far, window], show: bytes, splits: binarySplits(36), x: { label: "request", show: count }, floor: 0,
      lines: lines.map(([label, stroke], i) => ({ label, stroke, dash: DASHES[i] })),
    };
  };

  // What the jobs of a job file did over time: one line a job, or an NVM set.
  const overTime = (part, show, floor) => (figure, view) => {
    const run = data.runs[+figure.dataset.run];
    const { jobs } = run;
    const lines = jobs[part].filter((line) => line.values[view].some((v) => v != null));
    if (!lines.length) return null;
    const values = lines.map((line) => line.values[view]);
    return {
      data: [jobs.x, ...values], show: show[view] ?? show[0], x: { label: "time", show: nanos }, floor,
      sync: "time-" + figure.dataset.run,
      lines: lines.map(style),
      marks: marksOf([run], "ns").map((mark) => ({ ...mark, ink: css("--ink") })),
      log: show[0] === nanos && skewed(values.flat().filter((v) => v > 0)),
    };
  };

  // Miss ratios over the size of the cache, a line for each policy.
  const misses = (figure, view) => {
    const { lines, knee, in_bytes, answer } = data.caches[+figure.dataset.cache];
    const drawn = lines.filter((line) => line.values[view].some((v) => v != null));
    if (!drawn.length) return null;
    const tables = drawn.map((line) => [line.x, line.values[view]]);
    const styles = drawn.map((line) => (line.is_bound ? { ...style(line), dash: [2, 4] } : style(line)));
    if (knee && view === 0) {
      tables.push([[knee[0]], [knee[1]]]);
      styles.push({ label: "knee", stroke: css("--ink"), dots: 11 });
    }
    return {
      data: uPlot.join(tables), lines: styles, show: (v) => digits(v), floor: 0, height: 420, idle: answer,
      x: { label: "size of the cache", show: in_bytes ? bytes : count, log: true },
    };
  };

  // Figures of an experiment over time or a parameter: a line for each way, and limits across.
  const experiment = (figure) => {
    const { part, axis, kind, lines } = data.figures[+figure.dataset.figure];
    const drawn = lines.filter((line) => line.values.some((v) => v != null));
    if (!drawn.length) return null;
    const styles = drawn.map((line) => (line.is_bound ? { ...style(line), dash: [7, 5] } : style(line)));
    const values = drawn.flatMap((line) => line.values).filter((v) => v > 0);
    return {
      // All charts begin at 0, whatever their lines do.
      data: uPlot.join([...drawn.map((line) => [line.x, line.values]), [[0], [null]]]).slice(0, -1), lines: styles,
      show: kind === "ns" ? nanos : count, floor: 0,
      x: axis ? { label: axis, show: digits } : { label: "time", show: nanos },
      sync: axis ? undefined : "part-" + part, points: axis !== "", log: kind === "ns" && skewed(values),
    };
  };

  // Charts that say themselves what they draw.
  const rate = (v) => digits(v / 1e6) + " MB/s";
  const SHOW = { digits: (v) => digits(v), bytes, count, nanos, rate };
  const registered = (figure, view, log) =>
    curves(figure.dataset.columns.split(" "), SHOW[figure.dataset.show], +figure.dataset.floor)(figure, view, log);

  // ---- sweeps -------------------------------------------------------------------------------------------------------------
  const ends = (sides) => {
    const all = sides.flatMap((side) => [...side.low, ...side.high]).filter((v) => v != null);
    return [Math.min(...all), Math.max(...all)];
  };
  // A little more than the values take, so that points at the ends are whole.
  const padded = ([low, high]) => {
    const air = (high - low || Math.abs(high) || 1) * 0.06;
    return [low - air, high + air];
  };
  // From the least to the largest value over the seeds, with caps; across if `x` has the values.
  const errorBar = (u, scale, [low, high], other, ink) => {
    if (low == null || low === high) return;
    const ratio = devicePixelRatio;
    const { left, top, width, height } = u.bbox;
    const [from, to] = [low, high].map((v) => u.valToPos(v, scale, true));
    const at = u.valToPos(other, scale === "x" ? "y" : "x", true);
    // Shorter than the point is no bar.
    if (![from, to, at].every(Number.isFinite) || Math.abs(to - from) < 5 * ratio) return;
    const { ctx } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.strokeStyle = ink;
    ctx.lineWidth = 1.4 * ratio;
    const cap = 4 * ratio;
    const line = (a, b) => (scale === "x" ? [ctx.moveTo(...a), ctx.lineTo(...b)] : [ctx.moveTo(a[1], a[0]), ctx.lineTo(b[1], b[0])]);
    ctx.beginPath();
    line([from, at], [to, at]);
    for (const end of [from, to]) line([end, at - cap], [end, at + cap]);
    ctx.stroke();
    ctx.restore();
  };

  // A metric over an axis: a line for each combination of the other axes.
  const sweepLines = (figure) => {
    const { axis, kind, x, names, lines } = data.sweep.lines[+figure.dataset.sweep];
    const ink = (i) => css("--" + lines[i].ink);
    return {
      data: [x, ...lines.map((line) => line.mean)], show: SHOW[kind], floor: 0, bounds: ends(lines), points: true,
      splits: kind === "bytes" ? binarySplits(36) : undefined,
      lines: lines.map((line, i) => ({ label: line.label, stroke: ink(i), dash: DASHES[i % DASHES.length] })),
      log: kind === "nanos" && ends(lines)[1] > 20 * ends(lines)[0],
      x: {
        label: axis, range: padded([x[0], x.at(-1)]), show: names ? (v) => names[v] ?? "" : digits,
        splits: names ? () => x : undefined,
      },
      after: (u) => lines.forEach((line, i) =>
        x.forEach((at, k) => errorBar(u, "y", [line.low[k], line.high[k]], at, ink(i)))),
    };
  };

  // Two figures of every point. Names stand beside points of the front where there is room.
  const sweepFront = (figure) => {
    const { x, y, on, names } = data.sweep.fronts[+figure.dataset.sweep];
    const show = SHOW[y.kind];
    const of = (wanted) => y.mean.map((v, i) => (on[i] === wanted ? v : null));
    const named = (u, v, i, at) => (at == null ? `${known(u.data[i]).length} points` : v == null ? "–" : `${show(v)} (${names[at]})`);
    const ink = (i) => css(on[i] ? "--c0" : "--soft");
    const shown = on.includes(false) ? 3 : 2;
    return {
      data: [x.mean, of(true), of(false)].slice(0, shown), show, floor: Infinity, bounds: ends([y]), height: 330, log: y.kind === "nanos" && skewed(y.mean),
      splits: y.kind === "bytes" ? binarySplits(36) : undefined,
      series: [
        { label: "on the front", stroke: css("--c0"), size: 9, value: named },
        { label: "other points", stroke: css("--soft"), size: 7, fill: css("--card"), width: 1.4, value: named },
      ].slice(0, shown - 1),
      x: { label: x.name, show: SHOW[x.kind], range: padded(ends([x])) },
      after: (u) => {
        const ratio = devicePixelRatio;
        const taken = [];
        const free = (box) => taken.every((b) => box[0] > b[2] || box[2] < b[0] || box[1] > b[3] || box[3] < b[1]);
        const place = (i) => [u.valToPos(x.mean[i], "x", true), u.valToPos(y.mean[i], "y", true)];
        x.mean.forEach((at, i) => {
          errorBar(u, "y", [y.low[i], y.high[i]], at, ink(i));
          errorBar(u, "x", [x.low[i], x.high[i]], y.mean[i], ink(i));
          const [px, py] = place(i);
          taken.push([px - 5 * ratio, py - 5 * ratio, px + 5 * ratio, py + 5 * ratio]);
        });
        u.ctx.save();
        u.ctx.font = `${11 * ratio}px system-ui, sans-serif`;
        u.ctx.fillStyle = css("--ink");
        u.ctx.textBaseline = "middle";
        u.ctx.textAlign = "left";
        on.forEach((is, i) => {
          if (!is) return;
          const [px, py] = place(i);
          const wide = u.ctx.measureText(names[i]).width;
          const [gap, half] = [9 * ratio, 7 * ratio];
          for (const [left, middle] of [[px + gap, py], [px - gap - wide, py], [px - wide / 2, py - 2 * half], [px - wide / 2, py + 2 * half]]) {
            const box = [left, middle - half, left + wide, middle + half];
            const inside = box[0] >= u.bbox.left && box[2] <= u.bbox.left + u.bbox.width && box[1] >= u.bbox.top && box[3] <= u.bbox.top + u.bbox.height;
            if (!inside || !free(box)) continue;
            u.ctx.fillText(names[i], left, middle);
            taken.push(box);
            break;
          }
        });
        u.ctx.restore();
      },
    };
  };

  const KINDS = {
    misses,
    "sweep-line": sweepLines,
    "sweep-front": sweepFront,
    figure: experiment,
    "job-rate": overTime("rate", [(v) => digits(v), count], 0),
    "job-waf": overTime("waf", [(v) => digits(v)], 0),
    "job-cache": overTime("cache", [(v) => digits(v), count], 0),
    "job-read": overTime("read", [nanos], 0),
    "job-write": overTime("write", [nanos], 0),
    addresses,
    workingset: workingSet,
    "lat-write": curves(["w99", "w50", "w999"], nanos, 0),
    "lat-read": curves(["r99", "r50", "r999"], nanos, 0),
    "nines-write": percentiles("nines-write"),
    "nines-read": percentiles("nines-read"),
    request: requests,
  };

  const seriesOf = (chart) =>
    chart.series?.map((s) => ({
      label: s.label,
      stroke: s.stroke,
      paths: () => null,
      points: { show: true, size: s.size ?? 3.5, width: s.width ?? 0, fill: s.fill ?? s.stroke, stroke: s.stroke },
      value: s.value,
    })) ??
    (chart.lines ?? chart.runs.map((run, i) => ({ label: run.label, stroke: colour(run), dash: dash(i, run) }))).map((line) => ({
      ...line,
      width: 1.8,
      points: { show: !!(chart.points || line.dots), size: line.dots ?? 6, fill: line.stroke },
      value: orLast(chart.show, chart.idle),
    }));

  const draw = (card) => {
    const { figure, plot } = card;
    card.uplot?.destroy();
    plot.textContent = "";
    const chart = (KINDS[figure.dataset.chart] ?? registered)(figure, card.view, card.log);
    if (!chart) {
      plot.innerHTML = '<p class="empty">No run has values for this view.</p>';
      card.uplot = null;
      return;
    }
    if (card.log === null) {
      card.log = !!chart.log;
      figure.querySelector(".log")?.setAttribute("aria-pressed", String(card.log));
    }
    const log = card.log;
    const y = range(chart.floor, log);
    const options = {
      width: Math.max(240, plot.clientWidth),
      height: chart.height ?? 265,
      padding: [8, 26, 0, 0],
      legend: { live: true, markers: { width: 0, fill: (u, i) => (i ? swatch(u.series[i].stroke(u, i), u.series[i].dash) : "transparent") } },
      hooks: { draw: [...(chart.after ? [chart.after] : []), ...(chart.marks?.length ? [drawMarks(chart.marks)] : [])] },
      cursor: {
        sync: chart.sync ? { key: chart.sync, setSeries: true } : undefined,
        focus: { prox: 24 },
        dataIdx: nearest,
        points: { size: 7 },
        drag: { x: true, y: false },
      },
      focus: { alpha: 0.3 },
      scales: {
        x: { time: false, range: chart.x.range ? () => chart.x.range : undefined, ...(chart.x.log ? { distr: 3, log: 2 } : {}) },
        y: { distr: log ? 3 : 1, range: chart.bounds ? () => y(null, ...chart.bounds) : y },
      },
      axes: [
        axis({ label: chart.x.label, splits: chart.x.splits, values: (u, splits) => splits.map((v) => (v == null ? "" : chart.x.show(v))), space: 70, size: 32 }),
        valueAxis(chart.show, log ? undefined : chart.splits),
      ],
      series: [{ label: chart.x.label, value: chart.series ? orAll(chart.x.show, () => "") : orLast(chart.x.show, chart.idle) }, ...seriesOf(chart)],
    };
    card.marks = chart.marks?.length ?? 0;
    figure.querySelector("ul.legend")?.remove();
    card.uplot = new uPlot(options, log ? positive(chart.data) : chart.data, plot);
    plot.querySelector("canvas").setAttribute("aria-hidden", "true");
  };

  const cards = [...document.querySelectorAll("figure[data-chart]")].map((figure) => ({
    figure, plot: figure.querySelector(".plot"), view: +(figure.querySelector("[data-view]")?.dataset.view ?? 0), log: null, uplot: null,
  }));
  const press = (buttons, pressed) => buttons.forEach((b) => b.setAttribute("aria-pressed", String(b === pressed)));
  for (const card of cards) {
    const views = [...card.figure.querySelectorAll("[data-view]")];
    for (const button of views) {
      button.addEventListener("click", () => {
        card.view = +button.dataset.view;
        press(views, button);
        draw(card);
      });
    }
    const log = card.figure.querySelector(".log");
    log?.addEventListener("click", () => {
      card.log = !card.log;
      log.setAttribute("aria-pressed", String(card.log));
      draw(card);
    });
    draw(card);
  }
  const resized = new ResizeObserver(() => {
    for (const { uplot, plot } of cards) {
      if (uplot && Math.abs(uplot.width - plot.clientWidth) > 1) uplot.setSize({ width: Math.max(240, plot.clientWidth), height: uplot.height });
    }
  });
  cards.forEach((card) => resized.observe(card.plot));

  // ---- wear maps ----------------------------------------------------------------------------------------------------------
  // Stops of viridis (Smith and van der Walt, CC0): even in lightness, so that it reads without colour vision and in print.
  const STOPS = ["440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"]
    .map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  const shade = (t) => {
    const at = Math.min(Math.max(t, 0), 1) * (STOPS.length - 1);
    const i = Math.min(Math.floor(at), STOPS.length - 2);
    return STOPS[i].map((c, k) => Math.round(c + (STOPS[i + 1][k] - c) * (at - i)));
  };
  const RAMP = "linear-gradient(to right, " + STOPS.map((c) => `rgb(${c})`).join(", ") + ")";
  const decode = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

  const maps = [...document.querySelectorAll("figure[data-heat]")].map((figure) => {
    const map = data.runs[+figure.dataset.run][figure.dataset.heat];
    return { figure, map, canvas: figure.querySelector("canvas"), cells: decode(map.cells) };
  });
  const value = (entry, i) => (entry.cells[i] ? entry.map.low + (entry.cells[i] - 1) * entry.map.step : null);

  const paint = (entry, low, high) => {
    const { map, canvas, figure } = entry;
    canvas.width = map.columns;
    canvas.height = map.rows;
    const pixels = new ImageData(map.columns, map.rows);
    for (let i = 0; i < entry.cells.length; i++) {
      const v = value(entry, i);
      if (v == null) continue;
      pixels.data.set([...shade(high > low ? (v - low) / (high - low) : 0.5), 255], i * 4);
    }
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    const legend = figure.querySelector(".heat-legend");
    legend.innerHTML = '<span></span><span class="ramp"></span><span></span><span class="at"></span>';
    const [from, ramp, to, at] = legend.children;
    from.textContent = digits(low);
    to.textContent = digits(high);
    ramp.style.background = RAMP;
    canvas.onmousemove = (event) => {
      const box = canvas.getBoundingClientRect();
      const column = Math.min(map.columns - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * map.columns)));
      const row = Math.min(map.rows - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * map.rows)));
      const v = value(entry, row * map.columns + column);
      at.textContent = v == null ? "" : `row ${whole(row)}, column ${whole(column)}: ${map.each > 1 ? "about " : ""}${digits(v)}`;
    };
    canvas.onmouseleave = () => (at.textContent = "");
  };
  const paintGroup = (index, mode) => {
    for (const kind of ["blocks", "pages"]) {
      const own = maps.filter((m) => m.figure.dataset.group === index && m.figure.dataset.heat === kind);
      const low = Math.min(...own.map((m) => m.map.low));
      const high = Math.max(...own.map((m) => m.map.high));
      for (const m of own) mode === "own" ? paint(m, m.map.low, m.map.high) : paint(m, low, high);
    }
  };
  for (const box of document.querySelectorAll("[data-heat-scale]")) {
    const buttons = [...box.querySelectorAll("button")];
    for (const button of buttons) {
      button.addEventListener("click", () => {
        press(buttons, button);
        paintGroup(box.dataset.heatScale, button.dataset.scale);
      });
    }
    paintGroup(box.dataset.heatScale, "shared");
  }

  // ---- zones over the run -------------------------------------------------------------------------------------------------
  // A cell for each row of zones and each moment, as wide as the time until the next one.
  const LEFT = 52, TOP = 6, BOTTOM = 34, RIGHT = 8;
  const zoneCards = [...document.querySelectorAll("figure[data-zones]")].map((figure) => {
    const { zones, each, time, names, states, written, valid, kinds } = data.runs[+figure.dataset.zones].zones;
    const shares = { written: decode(written), valid: valid ? decode(valid) : null };
    return {
      figure, zones, each, time, names: new Map(names), states, shares, kinds, rows: states[0].length,
      canvas: figure.querySelector("canvas"), at: figure.querySelector("output"), view: "state", cell: null, cells: 0, last: null,
    };
  });
  const shareOf = (card, kind, column, row) => {
    const percent = card.shares[kind]?.[column * card.rows + row];
    return percent == null || percent === 255 ? null : percent;
  };
  // Which of the kinds of a view a cell has; -1 where that is not known.
  const kindOf = (card, kind, column, row) => {
    const view = card.kinds[kind];
    return view ? view.names.findIndex(([letter]) => letter === view.columns[column][row]) : -1;
  };
  // Where columns begin, in a plot so wide; the last is a moment, and gets as much as the others have in the mean.
  const edges = (card, width) => {
    const { time } = card;
    const span = time.at(-1) - time[0] || 1;
    const whole = span * (1 + 1 / Math.max(1, time.length - 1));
    return [...time.map((t) => ((t - time[0]) / whole) * width), width];
  };
  const zonesOf = (card, row) => {
    const first = row * card.each;
    const last = Math.min(first + card.each, card.zones) - 1;
    return first === last ? `zone ${first}` : `zones ${first} to ${last}`;
  };
  const describe = (card) => {
    if (!card.cell) return "";
    const [column, row] = card.cell;
    const letter = card.states[column][row];
    const parts = [card.names.get(letter)];
    if (letter !== "n") parts.push(`${shareOf(card, "written", column, row)} % written`);
    const valid = shareOf(card, "valid", column, row);
    if (valid != null) parts.push(`${valid} % valid`);
    for (const kind of ["owner", "lifetime"]) {
      const place = kindOf(card, kind, column, row);
      if (place >= 0) parts.push(`${kind} ${card.kinds[kind].names[place][1]}`);
    }
    return `${zonesOf(card, row)} at ${nanos(card.time[column])}: ${parts.join(", ")}`;
  };
  // A round step of which at most so many fit.
  const roundStep = (span, most) => {
    const power = 10 ** Math.floor(Math.log10(span / most));
    return [1, 2, 5, 10].map((n) => n * power).find((step) => span / step <= most);
  };
  const zoneLegend = (card) => {
    const legend = card.figure.querySelector(".zone-legend");
    legend.textContent = "";
    const add = (text, mark, ink) => {
      const entry = document.createElement("span");
      if (mark) entry.innerHTML = `<span class="${mark}" style="background: ${ink}"></span>`;
      entry.append(text);
      legend.append(entry);
    };
    const view = card.kinds[card.view];
    if (view) {
      const seen = new Set(view.columns.join(""));
      view.names.forEach(([letter, name], place) => seen.has(letter) && add(name, "key", css(`--k${place}`)));
      add("none or unknown", "key", css("--grid"));
      return;
    }
    if (card.view !== "state") {
      add("0 %");
      add("100 %", "ramp", RAMP);
      if (card.view === "valid") add("unknown", "key", css("--grid"));
      return;
    }
    const seen = new Set(card.states.join(""));
    for (const [letter, name] of card.names) if (seen.has(letter)) add(`${letter} ${name}`, "key", css("--z-" + letter));
    add("paler: less is written");
  };
  const paintZones = (card) => {
    const { canvas, rows, states } = card;
    const dpr = devicePixelRatio;
    const outer = Math.max(200, card.figure.clientWidth - 34);
    const height = Math.min(Math.max(rows * 14, 84), 320);
    const whole = TOP + height + BOTTOM;
    canvas.style.height = `${whole}px`;
    canvas.width = Math.round(outer * dpr);
    canvas.height = Math.round(whole * dpr);
    const width = outer - LEFT - RIGHT;
    const c = canvas.getContext("2d");
    c.scale(dpr, dpr);
    // Cells begin and end on pixels of the screen, so that there are no seams.
    const snap = (v) => Math.round(v * dpr) / dpr;
    const x = edges(card, width).map((edge) => snap(LEFT + edge));
    const tall = height / rows;
    const gap = tall >= 8 ? 1 : 0;
    const inks = new Map([...card.names.keys()].map((letter) => [letter, css("--z-" + letter)]));
    const kindInks = [...Array(8).keys()].map((place) => css(`--k${place}`));
    const unknown = css("--grid"), ink = css("--ink"), soft = css("--soft");
    card.cells = 0;
    c.font = `${Math.min(11, tall - 2)}px system-ui, sans-serif`;
    c.textAlign = "center";
    c.textBaseline = "middle";
    for (let column = 0; column < states.length; column++) {
      const wide = Math.max(x[column + 1] - x[column], 1 / dpr);
      for (let row = 0; row < rows; row++) {
        const letter = states[column][row];
        if (card.view === "state") {
          c.fillStyle = inks.get(letter);
          // What has no write pointer, or cannot be written any more, has no share.
          c.globalAlpha = "nrx".includes(letter) ? 1 : 0.3 + 0.7 * (shareOf(card, "written", column, row) / 100);
        } else if (card.kinds[card.view]) {
          c.fillStyle = kindInks[kindOf(card, card.view, column, row)] ?? unknown;
        } else {
          const percent = shareOf(card, card.view, column, row);
          c.fillStyle = percent == null ? unknown : `rgb(${shade(percent / 100)})`;
        }
        const from = snap(TOP + row * tall);
        c.fillRect(x[column], from, wide, snap(TOP + (row + 1) * tall) - from - gap);
        c.globalAlpha = 1;
        card.cells++;
        if (card.view === "state" && wide >= 13 && tall >= 12) {
          c.fillStyle = ink;
          c.fillText(letter, x[column] + wide / 2, TOP + (row + 0.5) * tall);
        }
      }
    }
    c.fillStyle = soft;
    c.font = "11px system-ui, sans-serif";
    c.textAlign = "right";
    const step = Math.max(1, roundStep(rows * card.each, Math.max(2, height / 22)) / card.each);
    for (let row = 0; row < rows; row += step) {
      c.fillText(String(Math.round(row * card.each)), LEFT - 6, TOP + (Math.floor(row) + 0.5) * tall);
    }
    c.textBaseline = "top";
    const [begin, end] = [card.time[0], card.time.at(-1)];
    const each = roundStep(end - begin || 1, Math.max(2, width / 90));
    for (let t = Math.ceil(begin / each) * each; t <= end; t += each) {
      const at = x[0] + ((x.at(-2) - x[0]) * (t - begin)) / (end - begin || 1);
      c.fillRect(snap(at), TOP + height + 1, 1, 4);
      c.textAlign = t === begin ? "left" : at > x.at(-1) - 30 ? "right" : "center";
      c.fillText(nanos(t), at, TOP + height + 7);
    }
    c.textAlign = "center";
    c.fillText("time", LEFT + width / 2, TOP + height + 21);
    c.save();
    c.translate(9, TOP + height / 2);
    c.rotate(-Math.PI / 2);
    c.fillText("zone", 0, -5);
    c.restore();
    if (card.cell) {
      const [column, row] = card.cell;
      c.strokeStyle = ink;
      c.lineWidth = 2;
      c.strokeRect(x[column] - 1, TOP + row * tall - 1, Math.max(x[column + 1] - x[column], 2) + 2, tall + 2);
    }
    card.at.textContent = describe(card);
    zoneLegend(card);
    card.last = [outer, height, x, tall];
  };
  for (const card of zoneCards) {
    const buttons = [...card.figure.querySelectorAll("[data-zone-view]")];
    for (const button of buttons) {
      button.addEventListener("click", () => {
        card.view = button.dataset.zoneView;
        press(buttons, button);
        paintZones(card);
      });
    }
    const choose = (cell) => {
      if (String(cell) === String(card.cell)) return;
      card.cell = cell;
      paintZones(card);
    };
    card.canvas.addEventListener("mousemove", (event) => {
      const [, height, x, tall] = card.last;
      const [left, top] = [event.offsetX, event.offsetY - TOP];
      if (left < x[0] || left >= x.at(-1) || top < 0 || top >= height) return;
      choose([x.findLastIndex((edge) => edge <= left), Math.floor(top / tall)]);
    });
    const leave = () => document.activeElement !== card.canvas && choose(null);
    card.canvas.addEventListener("mouseleave", leave);
    card.canvas.addEventListener("blur", () => choose(null));
    card.canvas.addEventListener("focus", () => card.cell ?? choose([card.states.length - 1, 0]));
    card.canvas.addEventListener("keydown", (event) => {
      const [column, row] = card.cell ?? [card.states.length - 1, 0];
      const far = Math.max(1, Math.round(card.states.length / 10));
      const move = {
        ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
        PageUp: [-far, 0], PageDown: [far, 0], Home: [-1e9, 0], End: [1e9, 0],
      }[event.key];
      if (!move) return;
      event.preventDefault();
      const within = (v, most) => Math.min(Math.max(v, 0), most);
      choose([within(column + move[0], card.states.length - 1), within(row + move[1], card.rows - 1)]);
    });
    paintZones(card);
    new ResizeObserver(() => {
      if (Math.abs(card.last[0] - Math.max(200, card.figure.clientWidth - 34)) > 1) paintZones(card);
    }).observe(card.figure);
  }

  // Paper is light, whatever the screen is.
  for (const media of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(media).addEventListener("change", () => {
      cards.forEach(draw);
      zoneCards.forEach(paintZones);
    });
  }

  // ---- self-check ---------------------------------------------------------------------------------------------------------
  // With #selfcheck in its address the page says what it drew, for a test that reads the document afterwards.
  if (location.hash === "#selfcheck") {
    const rgb = (text) => {
      const probe = document.createElement("canvas").getContext("2d");
      probe.fillStyle = text;
      probe.fillRect(0, 0, 1, 1);
      return probe.getImageData(0, 0, 1, 1).data;
    };
    const inked = (canvas, wanted) => {
      const { data: pixels } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let n = 0;
      for (let i = 0; i < pixels.length; i += 4) {
        const far = wanted ? Math.max(...[0, 1, 2].map((k) => Math.abs(pixels[i + k] - wanted[k]))) : 0;
        if (pixels[i + 3] > 128 && far < 24) n++;
      }
      return n;
    };
    const check = () => {
      for (const card of cards) {
        const canvas = card.plot.querySelector("canvas");
        const series = card.uplot ? card.uplot.series.slice(1) : [];
        state.charts.push({
          id: [card.figure.dataset.chart, card.figure.dataset.run ?? card.figure.dataset.group ?? card.figure.dataset.workload ?? card.figure.dataset.cache ?? card.figure.dataset.figure ?? card.figure.dataset.sweep].join("-"),
          marks: card.marks,
          series: series.map((s, i) => ({
            label: s.label,
            shown: card.plot.querySelectorAll(".u-series .u-value")[i + 1].textContent,
            points: card.uplot.data[i + 1].filter((v) => v != null).length,
            // uPlot turns colours into functions.
            pixels: inked(canvas, rgb(typeof s.stroke === "function" ? s.stroke(card.uplot, i + 1) : s.stroke)),
          })),
        });
      }
      for (const m of maps) {
        state.charts.push({ id: `${m.figure.dataset.heat}-${m.figure.dataset.run}`, cells: m.cells.length, pixels: inked(m.canvas, null) });
      }
      for (const card of zoneCards) {
        // As somebody would with the keyboard: to the first moment, a zone down.
        for (const key of ["Home", "ArrowDown"]) card.canvas.dispatchEvent(new KeyboardEvent("keydown", { key }));
        const said = card.at.textContent;
        const shown = {};
        for (const button of card.figure.querySelectorAll("[data-zone-view]")) {
          button.click();
          shown[button.dataset.zoneView] = inked(card.canvas, null);
        }
        state.charts.push({ id: `zones-${card.figure.dataset.zones}`, zone_cells: card.cells, views: shown, said });
      }
      const requested = performance.getEntriesByType("resource").map((entry) => entry.name);
      const out = document.createElement("script");
      out.type = "application/json";
      out.id = "selfcheck";
      // Parts of the answer and the summary that are wider than their boxes, besides the page itself.
      const wide = [document.documentElement, ...document.querySelectorAll(".answer, .answer *, #summary .scroll, #reproduction .scroll")]
        .filter((part) => part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0)
        .map((part) => part.className || part.tagName);
      out.textContent = JSON.stringify({ errors: state.errors, charts: state.charts, requested, wide }).replaceAll("<", "\\u003c");
      document.body.append(out);
    };
    // uPlot paints in a microtask. A timer, since a busy machine may draw no frame before the browser gives up.
    setTimeout(check, 500);
  }
})();
