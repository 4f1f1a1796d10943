/* <span class="clock" data-seconds="20"></span> becomes a count-up clock for saying an answer aloud.
   It judges nothing: past the target only its colour softens. Without this script the span is empty. */
(function () {
  "use strict";

  function button(label, onClick) {
    var element = document.createElement("button");
    element.type = "button";
    element.className = "clock-button";
    element.textContent = label;
    element.addEventListener("click", onClick);
    return element;
  }

  function build(host) {
    var target = Number(host.dataset.seconds);
    if (!(target > 0) || host.dataset.built) return;
    host.dataset.built = "yes";

    var before = 0; /* milliseconds counted before the last pause */
    var since = null; /* when the clock was last started; null while it stands */
    var ticking = null;
    var told = false;

    var face = document.createElement("span");
    face.className = "clock-face";
    var spoken = document.createElement("span"); /* for screen readers: only the start and the target */
    spoken.className = "clock-spoken";
    spoken.setAttribute("aria-live", "polite");

    function seconds() {
      return Math.floor((before + (since === null ? 0 : performance.now() - since)) / 1000);
    }

    function draw() {
      var now = seconds();
      face.textContent = now + " s of about " + target + " s";
      host.style.setProperty("--clock-share", Math.min(1, now / target));
      host.classList.toggle("clock-past", now > target);
      if (now >= target && !told) {
        told = true;
        spoken.textContent = "About " + target + " seconds have passed.";
      }
    }

    function stop() {
      if (since !== null) before += performance.now() - since;
      since = null;
      clearInterval(ticking);
      host.classList.remove("clock-running");
    }

    var start = button("Start the clock", function () {
      if (since === null) {
        if (before === 0) spoken.textContent = "The clock runs. Aim for about " + target + " seconds.";
        since = performance.now();
        ticking = setInterval(draw, 250);
        host.classList.add("clock-running");
        start.textContent = "Pause";
        reset.hidden = false;
      } else {
        stop();
        start.textContent = "Go on";
      }
      draw();
    });

    var reset = button("Reset", function () {
      stop();
      before = 0;
      told = false;
      spoken.textContent = "";
      start.textContent = "Start the clock";
      reset.hidden = true;
      start.focus();
      draw();
    });
    reset.hidden = true;

    host.setAttribute("role", "group");
    host.setAttribute("aria-label", "Clock for saying the answer aloud");
    host.append(start, face, reset, spoken);
    draw();
  }

  function buildAll() {
    document.querySelectorAll("span.clock").forEach(build);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", buildAll);
  else buildAll();
})();
