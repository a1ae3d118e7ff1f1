// What is selected, pointed at and picked. All charts show the same, and redraw once per frame.

class Store {
  constructor(study) {
    this.study = study;
    this.filters = new Map(); // name of a filter -> function from a trial to whether it stays
    this.selected = null; // Uint8Array by trial; null: no filter
    this.selectedCount = study.trials.count;
    this.hover = NO_TRIAL;
    this.picked = NO_TRIAL;
    this.listeners = [];
    this.changed = new Set();
    this.frame = 0;
  }

  // `listener({selection, hover, picked})` is told what has changed.
  listen(listener) {
    this.listeners.push(listener);
  }

  setFilter(name, filter) {
    if (filter) this.filters.set(name, filter);
    else if (!this.filters.delete(name)) return;
    this.applyFilters();
    this.announce("selection");
  }

  clear() {
    this.filters.clear();
    this.applyFilters();
    this.announce("selection", "cleared");
  }

  applyFilters() {
    const count = this.study.trials.count;
    if (this.filters.size === 0) {
      this.selected = null;
      this.selectedCount = count;
      return;
    }
    const filters = [...this.filters.values()];
    this.selected = new Uint8Array(count);
    this.selectedCount = 0;
    for (let t = 0; t < count; ++t) {
      if (!filters.every((filter) => filter(t))) continue;
      this.selected[t] = 1;
      this.selectedCount += 1;
    }
  }

  isSelected(t) {
    return this.selected === null || this.selected[t] === 1;
  }

  setHover(t) {
    if (t === this.hover) return;
    this.hover = t;
    this.announce("hover");
  }

  pick(t) {
    this.picked = t;
    this.announce("picked");
  }

  announce(...what) {
    for (const each of what) this.changed.add(each);
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const changed = this.changed;
      this.changed = new Set();
      for (const listener of this.listeners) listener(changed);
    });
  }
}
