// Figures are drawn, and tables sortable, when they come near: plotly.js is unpacked once, by its own hash in the policy.
const figures = JSON.parse(document.querySelector("script#figures").textContent);
const packed = document.querySelector("template#plotly");
const unpack = async () => {
  const letters = atob(packed.content.textContent), bytes = new Uint8Array(letters.length);
  for (let place = 0; place < bytes.length; place++) bytes[place] = letters.charCodeAt(place);  // from() is ten times slower
  const script = document.createElement("script");
  script.textContent = await new Response(
    new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  document.body.append(script);
};
const LEAST = 640, OPENING = 330;  // pixels: a crowded figure's least width, the height of one that opens the page
let plotly;
const plain = html => new DOMParser().parseFromString((html || "").replaceAll("<br>", " "), "text/html").body.textContent;
const draw = async (place, caption) => {
  const opening = Boolean(caption);
  if (place.dataset.drawn || !place.clientWidth) return;  // a folded figure has no width yet
  place.dataset.drawn = 1;
  if (!window.DecompressionStream) return void (place.textContent = "This browser is too old to draw the figure.");
  await (plotly ??= unpack());
  const {data, layout: whole = {}, frames} = figures[place.dataset.figure];
  const layout = structuredClone(whole), said = plain(layout.title?.text);
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", said);
  // On a phone, panels side by side and labels beside bars leave no room for data: such a figure scrolls.
  const narrow = place.clientWidth < LEAST;
  const crowded = layout.xaxis2 || layout.yaxis?.ticktext?.some(name => name.length > 9) || data.some(trace => trace.orientation === "h");
  if (opening || layout.width > place.clientWidth) {  // the title's lines were broken for another width
    delete layout.width;
    if (narrow && crowded && !opening) layout.width = LEAST;
    if (said) {
      if (!opening) place.before(caption = Object.assign(document.createElement("p"), {className: "title"}));
      caption.textContent = said;
      const above = (layout.margin?.t ?? 60) - (layout.annotations?.length ? 40 : 20);
      delete layout.title;
      layout.margin = {...layout.margin, t: layout.annotations?.length ? 40 : 20};
      if (layout.height) layout.height -= above;
    }
    if (opening) layout.height = Math.min(layout.height ?? OPENING, OPENING);
    if (opening && narrow && layout.xaxis2) {  // the titles of two panels do not fit into one line
      layout.margin.t = 60;
      layout.annotations?.forEach(title => {
        title.text = title.text.replace(/(.{12,}?) /g, "$1<br>");
        title.font = {...title.font, size: 12};
      });
      for (const axis of Object.keys(layout).filter(key => /^[xy]axis/.test(key))) {
        const title = layout[axis].title;
        if (title) layout[axis].title = {...title, text: title.text.replace(" (no unit)", ""), font: {size: 11}};
      }
    }
  }
  layout.modebar = {orientation: "v"};  // beside the title, not on it
  const config = {responsive: true, displaylogo: false, displayModeBar: opening || narrow ? false : "hover"};
  place.style.minHeight = "auto";
  Plotly.newPlot(place, {data, layout, frames, config});
};
const near = new IntersectionObserver(entries => entries.forEach(entry => {
  if (!entry.isIntersecting) return;
  if (entry.target.matches("table")) sortable(entry.target);
  else draw(entry.target);
}), {rootMargin: "600px"});
const every = [...document.querySelectorAll(".figure[data-figure]")];
every.forEach(place => near.observe(place));
addEventListener("beforeprint", () => every.forEach(place => draw(place)));

// The figure that opens the report is one of a notebook's, drawn again.
document.querySelectorAll("figure.opening").forEach(opening => {
  const from = opening.dataset.of.split(" ").map(id => document.querySelector(`[id="${id}"] .figure[data-figure]`)).find(Boolean);
  if (!from) return;
  const place = Object.assign(document.createElement("div"), {className: "figure"});
  place.dataset.figure = from.dataset.figure;
  opening.prepend(place);
  opening.hidden = false;
  draw(place, opening.querySelector("figcaption"));
});

// Tables with one row of heads (names of the index may stand below it) are sorted by a click, or Enter, on a head: numbers as numbers, the empty last.
const worth = cell => {
  const text = cell.textContent.trim(), number = parseFloat(text.replace(/,/g, ""));
  return [text, Number.isNaN(number) ? null : number];
};
const sort = (head, column) => {
  const body = head.closest("table").tBodies[0], up = head.getAttribute("aria-sort") === "descending";
  const rows = [...body.rows].map(row => [...worth(row.cells[column]), row]);
  const numbers = rows.every(([text, number]) => !text || number !== null);
  rows.sort(([a, m], [b, n]) => !a - !b || (up ? 1 : -1) * (numbers ? m - n : b.localeCompare(a)));
  head.parentElement.querySelectorAll("[aria-sort]").forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  body.append(...rows.map(([, , row]) => row));
};
const sortable = table => {
  near.unobserve(table);
  const [line, ...more] = table.tHead?.rows ?? [], rows = [...table.tBodies[0]?.rows ?? []];
  if (!line || rows.length < 2 || table.querySelector("[rowspan], [colspan]")) return;
  if (rows.some(row => row.cells.length !== line.cells.length)) return;
  const names = rows[0].querySelectorAll("th").length;
  if (more.some(row => [...row.cells].slice(names).some(cell => cell.textContent.trim()))) return;
  [...line.cells].forEach((head, column) => {
    head.classList.add("sorts");
    head.tabIndex = 0;
    head.addEventListener("click", () => sort(head, column));
    head.addEventListener("keydown", event => event.key === "Enter" && sort(head, column));
  });
};
document.querySelectorAll("table").forEach(table => near.observe(table));

// A folded notebook opens when a link leads to it; the contents show where the reader is.
const unfold = () => {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.matches("details")) target.open = true;
};
addEventListener("hashchange", unfold);
unfold();
const links = new Map([...document.querySelectorAll('nav a[href^="#"]')].map(link => [link.hash.slice(1), link]));
const reading = new IntersectionObserver(entries => entries.forEach(entry => {
  if (!entry.isIntersecting) return;
  links.forEach(link => link.removeAttribute("aria-current"));
  links.get(entry.target.id).setAttribute("aria-current", "true");
}), {rootMargin: "-10% 0px -85% 0px"});
links.forEach((link, id) => document.getElementById(id) && reading.observe(document.getElementById(id)));
