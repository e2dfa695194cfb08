"use strict";
// The page is complete without this: it adds a search and buttons to copy.
(function () {
  var box = document.getElementById("search");
  var input = box.querySelector("input");
  var found = document.getElementById("found");
  var articles = Array.from(document.querySelectorAll("article"));
  var links = new Map();
  document.querySelectorAll("nav li").forEach(function (li) { links.set(li.dataset.id, li); });
  articles.forEach(function (a) { a.search = (a.dataset.text + " " + a.textContent).toLowerCase(); });

  // On a small screen the list of operations would hide the page.
  var narrow = window.matchMedia("(max-width:52rem)").matches;
  if (narrow) document.querySelectorAll("nav .group").forEach(function (g) { g.open = false; });

  function filter() {
    var words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    var count = 0;
    articles.forEach(function (a) {
      var hit = words.every(function (w) { return a.search.includes(w); });
      if (hit) count++;
      a.hidden = !hit;
      links.get(a.id).hidden = !hit;
    });
    document.querySelectorAll("section.group, nav .group").forEach(function (g) {
      g.hidden = !g.querySelector("article:not([hidden]), li:not([hidden])");
    });
    document.getElementById("schemas").hidden = words.length > 0;
    document.getElementById("top").hidden = words.length > 0;
    if (narrow) document.querySelectorAll("nav .group").forEach(function (g) { g.open = words.length > 0; });
    found.textContent = words.length ? count + (count === 1 ? " operation" : " operations") : "";
  }
  box.hidden = false;
  input.addEventListener("input", filter);
  document.addEventListener("keydown", function (e) {
    if (e.key === "/" && document.activeElement !== input && !e.ctrlKey && !e.metaKey) {
      e.preventDefault();
      input.focus();
    } else if (e.key === "Escape" && document.activeElement === input) {
      input.value = "";
      filter();
    }
  });
  // A link to what the search hides shows everything again.
  window.addEventListener("hashchange", function () {
    var at = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (at && at.closest("[hidden]")) {
      input.value = "";
      filter();
      at.scrollIntoView();
    }
  });

  document.querySelectorAll("pre.copy").forEach(function (pre) {
    var text = pre.textContent;
    var button = document.createElement("button");
    button.className = "copier";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", function () {
      var done = function () {
        button.textContent = "Copied";
        setTimeout(function () { button.textContent = "Copy"; }, 1500);
      };
      if (navigator.clipboard) {
        navigator.clipboard.writeText(text).then(done, function () { choose(pre); });
      } else {
        choose(pre);
      }
    });
    pre.appendChild(button);
  });
  // Where the clipboard is closed to pages, the text is at least marked.
  function choose(pre) {
    var range = document.createRange();
    range.selectNodeContents(pre.querySelector("code"));
    var s = getSelection();
    s.removeAllRanges();
    s.addRange(range);
  }

  if ("IntersectionObserver" in window) {
    var current;
    var watch = new IntersectionObserver(function (entries) {
      entries.forEach(function (e) {
        if (!e.isIntersecting) return;
        if (current) current.removeAttribute("aria-current");
        current = links.get(e.target.id).querySelector("a");
        current.setAttribute("aria-current", "true");
      });
    }, { rootMargin: "0px 0px -80% 0px" });
    articles.forEach(function (a) { watch.observe(a); });
  }
})();
