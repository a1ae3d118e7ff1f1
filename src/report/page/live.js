// A page of `ranktune serve` follows its study: events name new versions, and the page is built again from new data. Not while somebody
// has selected something in it: then a button says that there is more.

// Of `ranktune serve`; null in a report.
function livePlaces() {
  const meta = document.querySelector('meta[name="ranktune-live"]');
  return meta && meta.dataset;
}

function followStudy(places, store, rebuild) {
  let shown = Number(places.version);
  let newest = shown;
  let busy = false;
  let asked = false; // for what is new, whatever is selected
  const text = element("span", { role: "status" }, "live");
  const button = element("button", { type: "button", id: "show-news", hidden: true, click: () => { asked = true; update(); } }, "Show");
  const bar = element("div", { id: "live" }, text, " ", button);
  document.body.prepend(bar, steering.node);

  const say = (words, offers) => {
    text.textContent = words;
    button.hidden = !offers;
  };
  const isInUse = () => store().selected !== null || store().picked !== NO_TRIAL;
  async function update() {
    if (busy) return;
    busy = true;
    let missed = false;
    try {
      const version = newest;
      const response = await fetch(places.data);
      if (!response.ok) throw new Error(response.statusText);
      const data = await response.text();
      if (!asked && isInUse()) { // since the data were asked for
        say("There are newer results.", true);
      } else {
        document.getElementById("data").textContent = data;
        const place = window.scrollY;
        rebuild();
        window.scrollTo(0, place);
        shown = version;
        asked = false;
        missed = newest !== version;
        document.documentElement.dataset.version = String(shown);
        say("live", false);
      }
    } catch (error) {
      say(`not up to date: ${error.message}`, true);
    }
    busy = false;
    if (missed) update();
  }
  const follow = (version) => {
    steering.refresh();
    newest = version;
    if (version === shown) return;
    if (isInUse()) say("There are newer results.", true);
    else update();
  };
  const connect = () => {
    const events = new EventSource(places.events);
    events.onmessage = (event) => follow(Number(event.data));
    events.onerror = () => {
      say("not connected: the page shows what was known last", false);
      if (events.readyState === EventSource.CLOSED) setTimeout(connect, 5000);
    };
    events.onopen = () => say("live", false);
  };
  connect();
}
