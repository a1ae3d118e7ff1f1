// A chart that is drawn when it comes into view, and again when its width or the colours change.

class Panel {
  // draw(): everything. update(changed): what the store says has changed; may be missing.
  constructor(node, store, draw, update) {
    this.node = node;
    this.draw = draw;
    this.update = update || (() => {});
    this.visible = false;
    this.undrawn = true; // since it was last drawn as a whole, its size or the colours have changed
    this.missed = new Set(); // what has changed in the store while it was out of view
    this.width = 0;
    store.listen((changed) => this.take(changed));
    new IntersectionObserver((entries) => this.see(entries[entries.length - 1].isIntersecting), { rootMargin: "200px" }).observe(node);
    new ResizeObserver(() => {
      if (node.clientWidth === this.width) return;
      this.width = node.clientWidth;
      this.redraw();
    }).observe(node);
    Panel.all.push(this);
  }

  see(visible) {
    this.visible = visible;
    if (!visible) return;
    if (this.undrawn) this.redraw();
    else if (this.missed.size > 0) this.update(this.missed);
    this.missed = new Set();
  }

  redraw() {
    this.undrawn = !this.visible;
    if (this.visible) this.draw();
  }

  take(changed) {
    if (this.visible && !this.undrawn) this.update(changed);
    else for (const each of changed) this.missed.add(each);
  }

  // Draws at once what will be in view when `root` begins at `top` of the window.
  static drawNear(root, top) {
    const begin = root.getBoundingClientRect().top;
    for (const panel of Panel.all) {
      const place = panel.node.getBoundingClientRect();
      if (place.bottom - begin + top > 0 && place.top - begin + top < window.innerHeight) panel.draw();
    }
  }

  // For paper, where nothing is scrolled into view.
  static drawAll() {
    for (const panel of Panel.all) {
      panel.draw();
      panel.undrawn = false;
    }
  }
}
Panel.all = [];
