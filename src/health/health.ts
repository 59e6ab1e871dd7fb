// Whether weir can do its work: the sum of named components, each of which says how it is.
// What is done with it (gRPC health, /healthcheck) stands elsewhere.

export interface ComponentHealth {
  readonly healthy: boolean;
  /** For people, such as `connected` or `no rules were loaded yet`; may be empty. */
  readonly detail: string;
}

export class Health {
  readonly #components = new Map<string, ComponentHealth>();
  readonly #listeners = new Set<(healthy: boolean) => void>();
  #healthy = true;

  /** Whether all components are healthy; true when there are none yet. */
  get healthy(): boolean {
    return this.#healthy;
  }

  /** By name, in the order of their first report. */
  get components(): ReadonlyMap<string, ComponentHealth> {
    return this.#components;
  }

  /** Says how a component is from now on; the first report adds it. Listeners are told before this returns. */
  report(component: string, healthy: boolean, detail = ""): void {
    this.#components.set(component, { healthy, detail });
    const overall = [...this.#components.values()].every((each) => each.healthy);
    if (overall === this.#healthy) return;
    this.#healthy = overall;
    // A copy: a listener may remove itself or others.
    for (const listener of [...this.#listeners]) listener(overall);
  }

  /** Calls the listener whenever the overall health changes; the returned function ends that. */
  onChange(listener: (healthy: boolean) => void): () => void {
    // A function of its own, so that one listener may be added twice.
    const entry = (healthy: boolean): void => listener(healthy);
    this.#listeners.add(entry);
    return () => {
      this.#listeners.delete(entry);
    };
  }
}
