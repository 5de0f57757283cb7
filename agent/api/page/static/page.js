// Keeps a page up to date and shows times in the user's zone. Everything also works without it, after a reload.
"use strict";
(() => {
  const POLL_MS = 3000, MIN_MS = 800;
  const policy = window.trustedTypes ? trustedTypes.createPolicy("page", { createHTML: (text) => text }) : { createHTML: (text) => text };
  const main = document.getElementById("main"), announcer = document.getElementById("announcer"), away = document.getElementById("away");
  const shown = new Map(); // part id → its HTML as the server sent it
  let stream = null, streamed = "", timer = 0, lastRefresh = 0, isRefreshing = false, isLeaving = false;

  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  // English says nothing about how somebody writes dates.
  const language = document.documentElement.lang;
  const format = new Intl.DateTimeFormat(language === "en" ? undefined : language, { dateStyle: "medium", timeStyle: "short" });

  function localize(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const date = new Date(time.dateTime);
      if (isNaN(date)) continue;
      time.title = time.dateTime + " · " + zone;
      time.textContent = format.format(date);
    }
    for (const input of root.querySelectorAll("input[data-zone]")) if (zone) input.value = zone;
  }

  // A part is replaced only if the server sends something else, and never while the user types in it.
  function isInUse(part) {
    const focused = document.activeElement;
    return part.contains(focused) && focused.matches("input, textarea, select") && focused.value !== focused.defaultValue;
  }

  function replacePart(part, fresh) {
    const html = fresh.innerHTML;
    if (shown.get(part.id) === html || isInUse(part)) return;
    shown.set(part.id, html);
    const open = [...part.querySelectorAll("details[open][id]")].map((details) => details.id);
    const focusId = part.contains(document.activeElement) ? document.activeElement.closest("[id]")?.id : "";
    const scrolls = [...part.querySelectorAll(".graph")].map((graph) => graph.scrollLeft);
    part.replaceChildren(...fresh.childNodes);
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    part.querySelectorAll(".graph").forEach((graph, index) => { graph.scrollLeft = scrolls[index] || 0; });
    if (focusId && focusId !== part.id) (document.getElementById(focusId)?.querySelector("summary, button, a") || main).focus();
    localize(part);
  }

  function announce(before, after) {
    const count = (root) => root.querySelectorAll(".ask").length;
    const status = (root) => root.querySelector(".title-row .pill")?.textContent.trim() || "";
    const texts = [];
    if (count(after) > count(before)) texts.push(announcer.dataset.waiting);
    if (status(after) !== status(before)) texts.push(status(after));
    if (texts.length) announcer.textContent = texts.join(". ");
  }

  async function refresh() {
    if (isRefreshing) return;
    isRefreshing = true;
    try {
      const reply = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "manual" });
      if (reply.type === "opaqueredirect") { location.reload(); return; }
      away.hidden = reply.status < 500;
      if (!reply.ok) return;
      const fresh = new DOMParser().parseFromString(policy.createHTML(await reply.text()), "text/html");
      const freshMain = fresh.getElementById("main");
      announce(main, freshMain);
      for (const part of main.querySelectorAll("[data-part]")) {
        const other = fresh.getElementById(part.id);
        if (other) replacePart(part, other);
      }
      document.title = fresh.title;
      main.toggleAttribute("data-live", freshMain.hasAttribute("data-live"));
      main.dataset.events = freshMain.dataset.events || "";
      follow();
    } catch { away.hidden = isLeaving; /* The next attempt may find the server. */ } finally {
      isRefreshing = false;
      lastRefresh = Date.now();
    }
  }

  function refreshSoon() {
    if (timer) return;
    timer = setTimeout(() => { timer = 0; refresh(); }, Math.max(50, lastRefresh + MIN_MS - Date.now()));
  }

  // New events of the run bring a new page; what it shows is always rendered by the server.
  function follow() {
    const url = main.dataset.events || "";
    if (url === streamed) return;
    stream?.close();
    streamed = url;
    if (!url) return;
    stream = new EventSource(url);
    stream.onmessage = stream.onerror = refreshSoon;
    stream.addEventListener("end", () => { stream.close(); refreshSoon(); });
  }

  function poll() {
    if (main.hasAttribute("data-live") && document.visibilityState === "visible") refreshSoon();
  }

  // The link that `agent serve` prints has a one-time code after the #, which browsers send to nobody.
  function logIn() {
    const login = document.getElementById("login"), code = location.hash.slice(1);
    if (!login || !code) return false;
    history.replaceState(null, "", location.pathname + location.search);
    login.elements.code.value = code;
    login.elements.token.required = false;
    login.submit();
    return true;
  }
  if (logIn()) return;
  window.addEventListener("hashchange", logIn); // The link was opened in this tab.
  window.addEventListener("pagehide", () => { isLeaving = true; });
  for (const part of main.querySelectorAll("[data-part]")) shown.set(part.id, part.innerHTML);
  localize(document);
  follow();
  setInterval(poll, POLL_MS);
  document.addEventListener("visibilitychange", poll);
})();
