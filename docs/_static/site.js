/* SPDX-License-Identifier: Apache-2.0 */
/* What the theme leaves out for readers who listen, or use the keyboard alone. */
const each = (selector, change) => document.querySelectorAll(selector).forEach(change);

/* What scrolls takes the focus, so that the arrow keys scroll it; the rest does not. */
function reach() {
  each("article pre, .table-wrapper, .picture", (frame) => {
    if (frame.scrollWidth > frame.clientWidth) frame.tabIndex = 0;
    else frame.removeAttribute("tabindex");
  });
}

addEventListener("DOMContentLoaded", () => {
  each(".sidebar-drawer", (part) => part.setAttribute("aria-label", "Pages"));
  each(".toc-drawer", (part) => part.setAttribute("aria-label", "On this page"));
  each('.caption[role="heading"]', (caption) => caption.setAttribute("aria-level", "2"));
});
addEventListener("load", reach);
addEventListener("resize", reach);
