// One connection to one Redis server: checks the server, loads the script, tries again until it is closed.
import type { Redis } from "ioredis";
import type { Script } from "./scripts.ts";
import { checkServer, type ServerReport } from "./server-check.ts";

export type ConnectionState =
  | { readonly kind: "connecting"; readonly reason: string }
  | { readonly kind: "ready"; readonly server: string }
  | { readonly kind: "closed" };

/** What happened that an operator may act on. */
export interface ConnectionEvents {
  readonly onState: (state: ConnectionState) => void;
  readonly onWarning: (message: string) => void;
}

/** How a script call is sent. */
export interface CallForm {
  /** By its name, or by its text to a server that does not know it yet. */
  readonly by: "name" | "text";
  /** Tells a node of a cluster to answer for a slot that is on its way to it. */
  readonly asking: boolean;
}

/** A server that says it takes no writes is left for another try, but not more often than this. Milliseconds. */
const RENEW_EVERY_MS = 1_000;

export class RedisConnection {
  readonly #client: Redis;
  readonly #script: Script;
  readonly #events: ConnectionEvents;
  readonly #handshakeMs: number;
  #state: ConnectionState = { kind: "connecting", reason: "not connected yet" };
  #settled = false;
  /** Why the attempt under way failed, once it has. */
  #failure: string | undefined;
  /** The attempt under way was given up; what still fails because of that means nothing. */
  #givenUp = false;
  #handshake: NodeJS.Timeout | undefined;
  /** On the clock of `performance.now()`. */
  #renewedMs = Number.NEGATIVE_INFINITY;
  #renewing = false;
  readonly #waiting = new Set<() => void>();

  /** @param handshakeMs how long a server that was reached may take until it can be used */
  constructor(client: Redis, script: Script, handshakeMs: number, events: ConnectionEvents) {
    this.#client = client;
    this.#script = script;
    this.#handshakeMs = handshakeMs;
    this.#events = events;
    client.on("error", (error: Error) => {
      this.#failure ??= error.message;
    });
    client.on("sentinelError", (error: Error) => {
      this.#set({ kind: "connecting", reason: error.message });
    });
    client.on("connecting", () => {
      this.#failure = undefined;
      this.#givenUp = false;
    });
    client.on("connect", () => {
      this.#handshake = setTimeout(
        () => this.#giveUp(`the server did not answer within ${this.#handshakeMs} ms`),
        this.#handshakeMs,
      );
    });
    client.on("ready", () => void this.#prepare());
    client.on("close", () => {
      clearTimeout(this.#handshake);
      // What a renewal closes was reported by it.
      if (!this.#renewing) this.#set({ kind: "connecting", reason: this.#failure ?? "the connection was closed" });
      this.#renewing = false;
    });
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** An attempt to connect has ended, one way or the other. */
  get settled(): boolean {
    return this.#settled;
  }

  /** Where the server is; empty for a socket. */
  get host(): string {
    return this.#client.options.host ?? "";
  }

  /** Starts to connect; success and failure show in the state. */
  open(): void {
    // The rejection says what the "error" event said already.
    this.#client.connect().catch(() => undefined);
  }

  /** Ends it; what is under way fails. */
  close(): void {
    clearTimeout(this.#handshake);
    this.#set({ kind: "closed" });
    this.#client.disconnect();
  }

  /** Ends it once what is under way is answered. */
  retire(): void {
    clearTimeout(this.#handshake);
    this.#set({ kind: "closed" });
    this.#client.quit().catch(() => this.#client.disconnect());
  }

  /**
   * Hangs up on a server that cannot count, so that another connection may find one that can.
   * Returns false when that was done a moment ago, and so did not help.
   */
  renew(reason: string): boolean {
    const nowMs = performance.now();
    if (this.#state.kind !== "ready") return true;
    if (nowMs - this.#renewedMs < RENEW_EVERY_MS) return false;
    this.#renewedMs = nowMs;
    this.#renewing = true;
    this.#set({ kind: "connecting", reason });
    this.#giveUp(reason);
    return true;
  }

  /** Resolves when the server can be asked, was closed, or at a time on the clock of `performance.now()`. */
  whenReady(untilMs: number): Promise<void> {
    if (this.#state.kind !== "connecting") return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, Math.max(0, untilMs - performance.now()));
      this.#waiting.add(done);
    });
  }

  async call(keys: readonly string[], args: readonly (string | number)[], form: CallForm): Promise<unknown> {
    if (form.asking) this.#client.asking().catch(() => undefined);
    if (form.by === "name") return await this.#client.evalsha(this.#script.sha1, keys.length, ...keys, ...args);
    return await this.#client.eval(this.#script.text, keys.length, ...keys, ...args);
  }

  async delete(key: string, asking: boolean): Promise<void> {
    if (asking) this.#client.asking().catch(() => undefined);
    await this.#client.unlink(key);
  }

  /** The reply of CLUSTER SLOTS. */
  async clusterSlots(): Promise<unknown> {
    return await this.#client.cluster("SLOTS");
  }

  async #prepare(): Promise<void> {
    try {
      const report = await this.#report();
      if (report.refused !== undefined) throw new Error(report.refused);
      if (report.warning !== undefined) this.#events.onWarning(report.warning);
      await this.#client.script("LOAD", this.#script.text);
      await this.call([], [""], { by: "name", asking: false });
      clearTimeout(this.#handshake);
      this.#set({ kind: "ready", server: report.server });
    } catch (error) {
      this.#giveUp(error instanceof Error ? error.message : String(error));
    }
  }

  /** What INFO says of the server. A user who may not ask for it can still count. */
  async #report(): Promise<ServerReport> {
    try {
      return checkServer(await this.#client.info());
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith("NOPERM")) throw error;
      const warning = "the Redis user may not run INFO, so the server's version and eviction policy were not checked";
      return { server: "Redis of unknown version", refused: undefined, warning };
    }
  }

  /** Ends this attempt to connect; the next one follows. */
  #giveUp(reason: string): void {
    clearTimeout(this.#handshake);
    if (this.#givenUp) return;
    this.#givenUp = true;
    this.#failure = reason;
    this.#client.disconnect(true);
  }

  #set(state: ConnectionState): void {
    if (this.#state.kind === "closed") return;
    this.#state = state;
    this.#settled = true;
    this.#events.onState(state);
    if (state.kind !== "connecting") for (const done of this.#waiting) done();
  }
}
