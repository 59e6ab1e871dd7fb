// Whether weir can do its work: named parts, each healthy or not. The whole is healthy when all parts are.

export class Health {
  readonly #parts = new Map<string, { readonly healthy: boolean; readonly detail: string }>();
  readonly #listeners = new Set<() => void>();

  /** Whether every part is. */
  get healthy(): boolean {
    for (const { healthy } of this.#parts.values()) if (!healthy) return false;
    return true;
  }

  /** @param detail what is wrong with a part that is not healthy */
  set(part: string, healthy: boolean, detail = ""): void {
    const before = this.healthy;
    this.#parts.set(part, { healthy, detail });
    if (this.healthy === before) return;
    for (const listener of this.#listeners) listener();
  }

  /** Calls `listener` whenever the whole changes, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
