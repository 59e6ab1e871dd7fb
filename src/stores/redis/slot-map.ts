// Which master holds which slots, read from the reply of CLUSTER SLOTS.
import type { HostAndPort } from "./address.ts";

export const SLOTS = 16_384;

/** Consecutive slots and the master that holds them. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly master: HostAndPort;
}

/**
 * @param reply ranges, each with its first and last slot, then its nodes, the master first, each with host and port
 * @param askedHost the host of the server that replied, which stands for a host that it does not know
 * @throws Error when the reply is not of that form
 */
export function readSlots(reply: unknown, askedHost: string): SlotRange[] {
  if (!Array.isArray(reply)) throw new Error("CLUSTER SLOTS was answered with something else");
  const ranges: SlotRange[] = [];
  for (const range of reply as readonly unknown[]) {
    const [first, last, node] = Array.isArray(range) ? (range as readonly unknown[]) : [];
    const [host, port] = Array.isArray(node) ? (node as readonly unknown[]) : [];
    if (!isSlot(first) || !isSlot(last) || typeof port !== "number") {
      throw new Error("CLUSTER SLOTS was answered with a range that is none");
    }
    // A node whose name was never told shows as "?".
    if (host !== "?") ranges.push({ first, last, master: { host: hostOf(host, askedHost), port } });
  }
  return ranges;
}

function hostOf(host: unknown, askedHost: string): string {
  return typeof host === "string" && host !== "" ? host : askedHost;
}

function isSlot(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < SLOTS;
}
