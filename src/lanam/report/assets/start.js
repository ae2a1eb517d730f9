// Everything begins here: colours first, then the what-if page, then the drawings.
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

  // The drawing library is in the file, compressed.
  async function loadLibrary() {
    const text = document.getElementById("library").textContent;
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  paint();
  theme.addEventListener("change", paint);
  dark.addEventListener("change", paint);
  addEventListener("beforeprint", () => lanam.drawAll());

  try {
    lanam.report = JSON.parse(document.getElementById("data").textContent);
    lanam.whatIf = new lanam.WhatIf(lanam.report);
    await loadLibrary();
    lanam.draw(lanam.report);
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    fail(`This browser cannot show the drawings (${error.message}). A browser from 2023 or later can.`);
    throw error;
  }
})();
