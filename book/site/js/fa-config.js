/* What the theme's scripts leave to mend. Loaded before them, on every page. */
(function () {
  "use strict";
  /* Font Awesome's script must not rewrite the icons that widgets add later: it breaks the Play widget. */
  window.FontAwesomeConfig = { observeMutations: false };

  /* The theme lets the keyboard scroll wide code and wide tables; a figure that is wider than the screen needs it too. */
  var figures = new ResizeObserver(function (changes) {
    changes.forEach(function (change) {
      var box = change.target;
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  });

  /* The pages' policy forbids handlers in attributes; policy.py writes these names in their place. */
  var presses = {
    fullscreen: function () { window.toggleFullScreen(); },
    print: function () { window.print(); }
  };
  document.addEventListener("click", function (event) {
    var button = event.target.closest("[data-press]");
    if (button) presses[button.dataset.press]();
  });

  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll(".figure-scroll").forEach(function (box) {
      figures.observe(box);
    });
    /* docutils gives the entries of the references a role that ARIA has retired and that a list may not hold. */
    document.querySelectorAll(".citation-list > [role=doc-biblioentry]").forEach(function (entry) {
      entry.setAttribute("role", "listitem");
    });
  });
})();
