// Entry point: colours, what-if page, charts.
"use strict";

(async () => {
  const theme = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function paint() {
    const wanted = theme.value === "auto" ? (dark.matches ? "dark" : "light") : theme.value;
    document.documentElement.dataset.theme = wanted;
    if (window.Plotly) lanam.redraw();
  }

  function fail(message) {
    const place = document.getElementById("failure");
    place.textContent = message;
    place.hidden = false;
  }

  // Large texts are compressed.
  async function inflate(id) {
    const text = document.getElementById(id).textContent;
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  async function loadLibrary() {
    const script = document.createElement("script");
    script.textContent = await inflate("library");
    document.head.append(script);
  }

  paint();
  theme.addEventListener("change", paint);
  dark.addEventListener("change", paint);
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((list) => { list.open = true; });
    lanam.drawAll();
  });

  try {
    lanam.report = JSON.parse(await inflate("data"));
    lanam.whatIf = new lanam.WhatIf(lanam.report);
    await loadLibrary();
    lanam.draw(lanam.report);
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    fail(`This browser cannot show the charts (${error.message}). A browser from 2023 or later can.`);
    throw error;
  }
})();
