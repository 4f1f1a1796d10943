/* Loaded after require.js and before embed-amd.js, on pages that hold widgets. */
(function () {
  var vendor = document.currentScript.src.replace(/js\/[^/]*$/, "vendor/");
  window.requirejs.config({
    waitSeconds: 60,
    paths: {
      anywidget: vendor + "anywidget",
      "@jupyter-widgets": vendor + "widget-fonts",
      "@jupyter-widgets/html-manager/dist": vendor + "widget-fonts"
    }
  });
  /* Widgets still call the MathJax 2 interface for their descriptions. */
  window.addEventListener("load", function () {
    var mathjax = window.MathJax;
    if (!mathjax || mathjax.Hub) return;
    mathjax.Hub = {
      Queue: function (job) {
        if (!mathjax.typesetPromise || !mathjax.startup) return;
        mathjax.startup.promise = mathjax.startup.promise.then(function () {
          return mathjax.typesetPromise([job[2]]);
        });
      }
    };
  });
})();
