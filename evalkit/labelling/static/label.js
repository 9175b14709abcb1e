// The labelling page. Text of items goes in by textContent only; what is decided counts when the program says so.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const words = JSON.parse($("words").textContent);
  const setting = JSON.parse($("setting").textContent);
  const token = location.pathname.split("/")[1];
  const byReply = setting.by === "replies";
  const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const KEPT = 6;

  let progress = null; // {total, done, n, undo}
  let item = null; // what is shown
  let marks = null; // letters that are good enough; null: nothing is marked yet
  let busy = false;
  let waiting = 0; // undos asked for while busy
  const cache = new Map();
  const drafts = new Map(); // what was chosen or written of an item that was left without saving
  let before = ""; // the choice of the item as it was shown

  const say = (key, values = {}) =>
    words[key].replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
  const make = (tag, name, text) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // -- talking to the program ------------------------------------------------------------------------------

  class Trouble extends Error {
    constructor(status, why) { super(why); this.status = status; }
  }
  async function call(path, body) {
    const options = { headers: { "X-Evalkit-Token": token }, credentials: "omit", cache: "no-store" };
    if (body !== undefined) {
      options.method = "POST";
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(body);
    }
    let answer;
    for (let left = body === undefined ? 3 : 1; answer === undefined; ) {
      try {
        answer = await fetch("/api/" + path, options);
      } catch {
        left -= 1;
        if (left === 0) throw new Trouble(0, "");
        await new Promise((done) => setTimeout(done, 200)); // reading again does no harm
      }
    }
    if (answer.ok) return answer.json();
    let why = answer.statusText;
    try { why = (await answer.json()).error; } catch { /* the status says enough */ }
    throw new Trouble(answer.status, why);
  }
  const fetched = (k) => {
    if (!cache.has(k)) {
      const coming = call("item/" + k);
      cache.set(k, coming);
      coming.catch(() => cache.delete(k));
      if (cache.size > KEPT) cache.delete(cache.keys().next().value);
    }
    return cache.get(k);
  };

  // -- telling ---------------------------------------------------------------------------------------------

  function tell(text, ask = false) {
    $("say").textContent = text;
    $("say").classList.toggle("ask", ask);
  }
  function trouble(text) {
    $("trouble").textContent = text;
    $("trouble").hidden = !text;
    if (text) $("trouble").scrollIntoView({ block: "nearest" });
  }
  async function failed(error) {
    if (!(error instanceof Trouble)) throw error;
    if (error.status === 409) {
      cache.clear();
      await load();
      trouble(say("stale"));
    } else {
      trouble(error.status === 0 || error.status === 403 ? say("lost") : say("refused", { why: error.message }));
    }
  }
  function count(state) {
    progress = state;
    $("count").textContent = say("progress", state);
    $("progress").max = state.total;
    $("progress").value = state.done;
    $("undo").setAttribute("aria-disabled", String(!state.undo));
  }

  // -- showing ---------------------------------------------------------------------------------------------

  // A long text in pieces, each at a line end where there is one, so that what is out of sight costs nothing.
  function written(text, label) {
    const box = make("div", "text");
    box.dir = "auto";
    box.lang = /[ᄀ-ᇿ㄰-㆏가-힣]/.test(text) ? "ko" : /[぀-ヿ]/.test(text) ? "ja" : /[一-鿿]/.test(text) ? "zh" : "";
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", label);
    if (!text) {
      box.append(make("span", "dim", say("empty")));
      return box;
    }
    const size = 8000;
    for (let at = 0; at < text.length; ) {
      let end = Math.min(text.length, at + size);
      if (end < text.length) {
        const line = text.lastIndexOf("\n", end);
        if (line > at) end = line + 1;
        else if (/[\ud800-\udbff]/.test(text[end - 1])) end += 1;
      }
      box.append(make("div", text.length > size ? "piece" : "", text.slice(at, end)));
      at = end;
    }
    return box;
  }
  // Only what is longer than its box has to be reached by Tab.
  function scrolls(box) {
    if (box.scrollHeight > box.clientHeight || box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
  const SVG = "http://www.w3.org/2000/svg";
  const SIGNS = { good: "M5.5 10.4l3 3 6-6.6", bad: "M6.7 6.7l6.6 6.6M13.3 6.7l-6.6 6.6", open: "" };
  function sign(state) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 20 20");
    svg.setAttribute("class", "sign");
    svg.setAttribute("aria-hidden", "true");
    const rim = document.createElementNS(SVG, "circle");
    for (const [name, value] of [["cx", 10], ["cy", 10], ["r", 8.5]]) rim.setAttribute(name, value);
    rim.setAttribute("class", state === "open" ? "rim dash" : "rim");
    const ink = document.createElementNS(SVG, "path");
    ink.setAttribute("d", SIGNS[state]);
    ink.setAttribute("class", "ink");
    svg.append(rim, ink);
    return svg;
  }

  function show(shown, { undone = null, focus = true } = {}) {
    item = shown;
    $("done").hidden = true;
    $("item").hidden = false;
    $("item-title").textContent = say("item", { n: item.index + 1, total: progress.total });
    $("item-id").textContent = item.id;
    $("item-category").textContent = item.category;
    $("item-state").textContent = item.decision ? say("decided") : "";
    $("turns").replaceChildren(
      ...item.turns.map((turn) => {
        const box = make("div", "turn");
        if (turn.role) box.append(make("p", "role", turn.role));
        box.append(written(turn.text, turn.role ? `${say("prompt")}, ${turn.role}` : say("prompt")));
        return box;
      }),
    );
    $("reference").hidden = item.reference === null;
    $("reference-text").replaceChildren(...(item.reference === null ? [] : [written(item.reference, say("reference"))]));
    if (byReply) showReplies();
    if (item.said) showSaid();
    $("risk-hint").textContent = item.risk === null ? "" : say("fromFile", { risk: item.risk });
    const fresh = { risk: item.risk ?? (setting.risks.length === 1 ? setting.risks[0] : null), note: "" };
    if (undone) drafts.delete(item.index);
    put(undone || item.decision || fresh);
    before = JSON.stringify(choice());
    if (drafts.has(item.index)) {
      put(drafts.get(item.index));
      $("item-state").textContent = say("draft");
    }
    $("item-state").classList.toggle("ask", drafts.has(item.index));
    $("before").setAttribute("aria-disabled", String(item.index === 0));
    $("after").setAttribute("aria-disabled", String(item.index === progress.total - 1));
    for (const box of $("item").querySelectorAll(".text")) scrolls(box);
    window.scrollTo(0, 0);
    if (focus) $("item-title").focus({ preventScroll: true });
    for (const next of [item.next, item.index + 1]) {
      if (next !== null && next !== item.index && next < progress.total) fetched(next).catch(() => {});
    }
  }
  function showReplies() {
    $("replies").replaceChildren(
      ...item.replies.map((reply) => {
        const card = make("li", "reply");
        const mark = make("button", "mark");
        mark.type = "button";
        mark.append(make("kbd", "", reply.letter), make("span", "is"));
        mark.addEventListener("click", (event) => { toggle(reply.letter); release(event); });
        card.append(mark, written(reply.text, say("reply", { letter: reply.letter })));
        return card;
      }),
    );
    const silent = item.silent;
    $("silent").hidden = silent === 0;
    $("silent").textContent = item.replies.length === 0 ? say("noneReplied")
      : silent === 1 ? say("silentOne") : say("silentMany", { n: silent });
    $("every").hidden = item.replies.length === 0;
  }
  function showSaid() {
    $("said").hidden = item.said.length === 0;
    $("both").replaceChildren(
      ...item.said.map((said, k) => {
        const box = make("div", "opinion");
        const line = make("p", "", "");
        const what = said.tier !== undefined
          ? (said.tier === "unsolvable" ? say("saidNone") : say("saidTier", { tier: said.tier }))
          : said.good.length ? say("saidGood", { letters: said.good.join(", ") }) : say("saidNone");
        line.append(make("strong", "", say(k === 0 ? "first" : "second")), make("span", "", what),
          make("span", "", say("saidRisk", { risk: said.risk })));
        box.append(line);
        if (said.note) box.append(make("p", "remark", say("saidNote", { note: said.note })));
        const button = make("button", "pick");
        button.type = "button";
        button.append(make("kbd", "", k === 0 ? "[" : "]"), " " + say("take"));
        button.addEventListener("click", (event) => { take(said); release(event); });
        box.append(button);
        return box;
      }),
    );
  }

  // -- choosing --------------------------------------------------------------------------------------------

  // After a click of the mouse Enter saves again, instead of clicking once more.
  function release(event) {
    if (event.detail > 0) $("item-title").focus({ preventScroll: true });
  }
  function put(decision) {
    take(decision);
    $("note").value = decision.note;
  }
  const chosen = (group) => {
    const input = $(group).querySelector("input:checked");
    return input === null ? null : Number(input.value);
  };
  // What the page says now; a field that nothing is said of is left out.
  function choice() {
    const out = { note: $("note").value };
    const risk = chosen("risks");
    if (risk !== null) out.risk = setting.risks[risk];
    const tier = byReply ? null : chosen("tiers");
    if (tier !== null) out.tier = tier === -1 ? "unsolvable" : setting.tiers[tier];
    if (marks !== null && byReply) out.good = [...marks].sort();
    return out;
  }
  function keep() {
    if (item === null || $("item").hidden) return;
    const now = choice();
    if (JSON.stringify(now) === before) drafts.delete(item.index);
    else drafts.set(item.index, now);
  }
  function take(decision) {
    if (byReply) {
      marks = decision.good === undefined ? null : new Set(decision.good);
      paint();
    } else {
      const tier = decision.tier === undefined ? null
        : decision.tier === "unsolvable" && !setting.tiers.includes("unsolvable") ? -1 : setting.tiers.indexOf(decision.tier);
      for (const input of $("tiers").querySelectorAll("input")) input.checked = tier !== null && Number(input.value) === tier;
    }
    const risk = decision.risk == null ? -1 : setting.risks.indexOf(decision.risk);
    for (const input of $("risks").querySelectorAll("input")) input.checked = Number(input.value) === risk;
  }
  function paint() {
    const cards = [...$("replies").children];
    cards.forEach((card, k) => {
      const state = marks === null ? "open" : marks.has(LETTERS[k]) ? "good" : "bad";
      card.classList.toggle("good", state === "good");
      card.classList.toggle("bad", state === "bad");
      const mark = card.firstChild;
      mark.setAttribute("aria-pressed", String(state === "good"));
      mark.querySelector(".sign")?.remove();
      mark.append(sign(state));
      const is = state === "open" ? say("unmarked") : say(state === "good" ? "good" : "notGood");
      mark.querySelector(".is").textContent = is;
      mark.setAttribute("aria-label", `${say("reply", { letter: LETTERS[k] })}: ${is}`);
    });
    $("none").setAttribute("aria-pressed", String(marks !== null && marks.size === 0));
  }
  function toggle(letter) {
    if (marks !== null && marks.has(letter)) {
      marks.delete(letter);
      if (marks.size === 0) marks = null; // nothing said, which is not the same as "none"
    } else {
      marks = (marks ?? new Set()).add(letter);
    }
    paint();
    if (marks !== null) tell("");
  }

  // -- deciding --------------------------------------------------------------------------------------------

  async function save() {
    if (busy || item === null || $("item").hidden) return;
    const now = choice();
    if (now.good === undefined && now.tier === undefined) return tell(say(byReply ? "chooseReply" : "chooseTier"), true);
    if (now.risk === undefined) return tell(say("chooseRisk"), true);
    await locked(async () => {
      const state = await call("decide", { index: item.index, after: progress.n, ...now });
      trouble("");
      drafts.delete(item.index);
      before = JSON.stringify(now);
      cache.delete(item.index);
      count(state);
      await go(state.next, say("saved", state));
    });
  }
  async function undo() {
    if (busy) { waiting += 1; return; } // pressed twice is meant twice
    if (!progress.undo) return tell(say("nothingToUndo"), true);
    await locked(async () => {
      const state = await call("undo", { after: progress.n });
      keep();
      trouble("");
      cache.clear();
      count(state);
      show(await fetched(state.index), { undone: state.undone });
      tell(say("undone", { n: state.index + 1 }));
    });
  }
  async function locked(work) {
    busy = true;
    $("save").setAttribute("aria-disabled", "true");
    try {
      await work();
    } catch (error) {
      waiting = 0;
      await failed(error);
    } finally {
      busy = false;
      $("save").removeAttribute("aria-disabled");
    }
    if (waiting > 0) {
      waiting -= 1;
      await undo();
    }
  }
  async function go(k, text) {
    keep();
    if (k === null) {
      $("item").hidden = true;
      $("done").hidden = false;
      $("done-title").textContent = say("allDone", progress);
      $("done").focus();
      return;
    }
    show(await fetched(k));
    trouble("");
    tell(text ?? "");
  }
  async function step(by) {
    if (busy) return;
    if ($("item").hidden) return locked(() => go(by < 0 ? progress.total - 1 : 0));
    const k = item.index + by;
    if (k < 0 || k >= progress.total) return tell(say(k < 0 ? "start" : "end"));
    await locked(() => go(k));
  }
  async function load() {
    const state = await call("state");
    count(state);
    await go(state.next);
  }

  // -- keys ------------------------------------------------------------------------------------------------

  // A Korean input method sends Hangul for a letter; the place of the key says which one is meant.
  function keyOf(event) {
    if (event.key.length === 1 && event.key >= " " && event.key <= "~") return event.key.toUpperCase();
    const place = /^(?:Key([A-Z])|(?:Digit|Numpad)([0-9]))$/.exec(event.code || "");
    if (place) return place[1] || place[2];
    return { BracketLeft: "[", BracketRight: "]" }[event.code] ?? event.key;
  }
  const writing = (element) => element instanceof HTMLTextAreaElement;
  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
    if (writing(event.target)) {
      if (event.key === "Escape") { event.preventDefault(); $("item-title").focus({ preventScroll: true }); }
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); if (!event.repeat) save(); }
      return;
    }
    if (!$("single").checked && event.key !== "Enter") return;
    if (event.key === "Enter") {
      // A button that was reached by key is pressed by key; a choice that was made is saved.
      if (event.target.closest("button, a, summary")) return;
      event.preventDefault();
      if (!event.repeat) save();
      return;
    }
    const radio = event.target instanceof HTMLInputElement;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      if (radio || event.shiftKey) return; // arrows move among choices
      const box = event.target;
      if (box.classList.contains("text") && box.scrollWidth > box.clientWidth) return;
      event.preventDefault();
      step(event.key === "ArrowLeft" ? -1 : 1);
      return;
    }
    if (act(keyOf(event), event.repeat)) event.preventDefault();
  }
  function act(key, repeat) {
    if (key === "?") { $("keys").showModal(); return true; }
    if (key === "U") { if (!repeat) undo(); return true; }
    if ($("item").hidden || busy || repeat) return false;
    if (key === "M") { $("note").focus(); return true; }
    if (key === "J") { if (item.next !== null) locked(() => go(item.next)); return true; }
    if (item.said && (key === "[" || key === "]")) {
      const said = item.said[key === "[" ? 0 : 1];
      if (said) { take(said); tell(""); }
      return true;
    }
    if (/^[1-9]$/.test(key) && Number(key) <= setting.risks.length) { choose("risks", Number(key) - 1); return true; }
    if (byReply && key === "X") { $("none").click(); return true; }
    if (byReply && key === "V") { $("every").click(); return true; }
    if (!byReply && key === "X") { choose("tiers", -1); return true; }
    const place = key.length === 1 ? LETTERS.indexOf(key) : -1;
    if (byReply && place >= 0 && place < item.replies.length) { toggle(key); return true; }
    if (!byReply && place >= 0 && place < setting.tiers.length) { choose("tiers", place); return true; }
    return false;
  }
  function choose(group, value) {
    $(group).querySelector(`input[value="${value}"]`).checked = true;
    tell("");
  }

  document.addEventListener("keydown", pressed);
  $("item").addEventListener("submit", (event) => { event.preventDefault(); save(); });
  $("undo").addEventListener("click", (event) => { undo(); release(event); });
  $("help").addEventListener("click", () => $("keys").showModal());
  $("before").addEventListener("click", () => step(-1));
  $("after").addEventListener("click", () => step(1));
  $("look").addEventListener("click", () => step(1));
  for (const group of ["risks", "tiers"]) $(group)?.addEventListener("change", () => tell(""));
  if (byReply) {
    $("none").addEventListener("click", (event) => { marks = marks !== null && marks.size === 0 ? null : new Set(); paint(); tell(""); release(event); });
    $("every").addEventListener("click", (event) => { marks = new Set(item.replies.map((r) => r.letter)); paint(); tell(""); release(event); });
  }
  $("reference").addEventListener("toggle", () => scrolls($("reference-text").firstChild ?? $("reference-text")));
  $("single").addEventListener("change", () => {
    try { localStorage.setItem("evalkit-single-keys", $("single").checked ? "on" : "off"); } catch { /* stays for this page */ }
    tell(say($("single").checked ? "keysOn" : "keysOff"));
  });
  try { $("single").checked = localStorage.getItem("evalkit-single-keys") !== "off"; } catch { /* on */ }

  load().catch(failed);
})();
