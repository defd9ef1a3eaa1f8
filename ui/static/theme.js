// Runs before the first drawing, so that no page flashes in the wrong theme.
(function () {
  try {
    var theme = localStorage.getItem('millrace.theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
    var density = localStorage.getItem('millrace.density');
    if (density) document.documentElement.dataset.density = density;
    if (localStorage.getItem('millrace.nav') === 'narrow') document.documentElement.dataset.nav = 'narrow';
  } catch (e) { /* a browser without storage has the system's theme */ }
})();
