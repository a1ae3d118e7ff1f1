// A chart that is drawn when it comes into view, and again when its width or the colours change.

class Panel {
  // draw(): everything. update(changed): what the store says has changed; may be missing.
  constructor(node, store, draw, update) {
    this.draw = draw;
    this.update = update || (() => {});
    this.visible = false;
    this.stale = true;
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
    if (visible && this.stale) this.redraw();
  }

  redraw() {
    this.stale = !this.visible;
    if (this.visible) this.draw();
  }

  take(changed) {
    if (this.visible && !this.stale) this.update(changed);
    else this.stale = true;
  }

  // For paper, where nothing is scrolled into view.
  static drawAll() {
    for (const panel of Panel.all) {
      panel.draw();
      panel.stale = false;
    }
  }
}
Panel.all = [];
