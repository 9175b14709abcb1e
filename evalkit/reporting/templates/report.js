"use strict";
// Comfort only: the page reads without it. It shows texts and positions made when the report was written.
(function () {
  var doc = document, one = function (s, e) { return (e || doc).querySelector(s); };
  var all = function (s, e) { return Array.from((e || doc).querySelectorAll(s)); };
  doc.documentElement.classList.add("js");

  // A box that does not scroll needs no stop for the keyboard.
  function stops() {
    all(".box").forEach(function (box) {
      if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0; else box.removeAttribute("tabindex");
    });
  }
  stops();
  addEventListener("resize", stops);

  var holder = one("#points"), slider = one("#slider"), show = null, start = 0;
  if (holder && slider) {
    var data = JSON.parse(holder.textContent), slots = all("[data-o]"), charts = all(".curve svg"), where = one("#where");
    start = data.start;
    var move = function (node, x, y) {
      if (!node) return;
      node.classList.toggle("gone", y === null);
      if (y !== null) node.setAttribute("transform", "translate(" + x + "," + y + ")");
    };
    show = function (i) {
      var texts = data.text[i];
      slots.forEach(function (slot) { slot.textContent = texts[+slot.dataset.o]; });
      slider.setAttribute("aria-valuetext", texts[6]);
      where.textContent = i === start ? where.dataset.start : where.dataset.else;
      where.classList.toggle("off", i !== start);
      charts.forEach(function (chart, c) {
        var mark = data.marks[i][c];
        move(one(".probe", chart), mark[0], 0);
        move(one(".est", chart), mark[0], mark[1]);
        move(one(".top", chart), mark[0], mark[2]);
      });
    };
    slider.value = start;
    slider.setAttribute("aria-valuetext", data.text[start][6]);
    slider.addEventListener("input", function () { show(+slider.value); });
    one("#back").addEventListener("click", function () { slider.value = start; show(start); });
  }

  var rows = all(".items tbody tr"), find = one("#find"), risk = one("#find-risk"), found = one("#found");
  function filter() {
    var wanted = find.value.trim().toLowerCase(), n = 0;
    rows.forEach(function (row) {
      var fits = (!risk.value || row.dataset.risk === risk.value) && row.textContent.toLowerCase().includes(wanted);
      row.hidden = !fits;
      if (fits) n += 1;
    });
    found.textContent = found.dataset.form.replace("{k}", n).replace("{n}", rows.length);
  }
  if (find) [find, risk].forEach(function (field) { field.addEventListener("input", filter); });

  // Paper shows what was decided and every row, whatever is on the screen.
  addEventListener("beforeprint", function () {
    if (show) show(start);
    rows.forEach(function (row) { row.hidden = false; });
  });
  addEventListener("afterprint", function () {
    if (show) show(+slider.value);
    if (find) filter();
  });
})();
