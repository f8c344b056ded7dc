const figures = JSON.parse(document.querySelector("script#figures").textContent);
const draw = place => {  // a folded figure has no width yet: it is drawn when its notebook is opened
  if (place.dataset.drawn || !place.clientWidth) return;
  place.dataset.drawn = 1;
  const {data, layout = {}, frames} = figures[place.dataset.figure];
  if (layout.width > place.clientWidth) delete layout.width;
  Plotly.newPlot(place, {data, layout, frames, config: {responsive: true, displaylogo: false}});
};
const drawIn = root => root.querySelectorAll(".figure").forEach(draw);
document.querySelectorAll("details.notebook").forEach(d => d.addEventListener("toggle", () => drawIn(d)));
const unfold = () => {
  const target = document.getElementById(location.hash.slice(1));
  if (target && target.matches("details.notebook")) target.open = true;
};
addEventListener("hashchange", unfold);
unfold();
drawIn(document);
