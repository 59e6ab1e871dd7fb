// A real Envoy, as many at once as a test likes: its ports are picked by the system and read from its admin page.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Child, startChild } from "./child-process.ts";
import { eventually } from "./eventually.ts";

const BINARY = fileURLToPath(new URL("../../.venv/bin/envoy", import.meta.url));

export interface Envoy {
  readonly child: Child;
  /** The port of the listener with this name. */
  port(listener: string): number;
  /**
   * A counter or gauge. Envoy leaves out what was never touched, which is `undefined` here and not 0.
   */
  stat(name: string): Promise<number | undefined>;
  /** An admin page as text. */
  admin(path: string): Promise<string>;
  stop(): Promise<void>;
}

interface ListenerStatuses {
  readonly listener_statuses: readonly {
    readonly name: string;
    readonly local_address: { readonly socket_address: { readonly port_value: number } };
  }[];
}

/** @param config the bootstrap as plain data; ports of listeners and admin should be 0. */
export async function startEnvoy(config: object): Promise<Envoy> {
  const directory = mkdtempSync(join(tmpdir(), "weir-envoy-"));
  const configPath = join(directory, "envoy.json");
  const adminPath = join(directory, "admin-address");
  writeFileSync(configPath, JSON.stringify(config));
  const args = ["-c", configPath, "--admin-address-path", adminPath, "--log-level", "warn", "--disable-hot-restart"];
  // One worker: one connection to weir, and counters that need no waiting.
  const child = startChild(BINARY, [...args, "--concurrency", "1"], { PATH: process.env["PATH"] ?? "" });
  const removeFiles = (): void => rmSync(directory, { recursive: true, force: true });
  child.exit.then(removeFiles, removeFiles);
  const ended = child.exit.then(() => {
    throw new Error(`Envoy ended; it printed:\n${child.output()}`);
  });
  ended.catch(() => {}); // only the start below listens

  const namesAddress = eventually("Envoy names its admin address", () =>
    existsSync(adminPath) ? readFileSync(adminPath, "utf8") || undefined : undefined,
  );
  const address = await Promise.race([namesAddress, ended]);
  const admin = async (path: string): Promise<string> => (await fetch(`http://${address}${path}`)).text();
  const live = eventually("Envoy is live", async () => ((await admin("/ready")).trim() === "LIVE" ? true : undefined));
  await Promise.race([live, ended]);

  const { listener_statuses } = JSON.parse(await admin("/listeners?format=json")) as ListenerStatuses;
  const ports = new Map(
    listener_statuses.map(({ name, local_address }) => [name, local_address.socket_address.port_value]),
  );
  return {
    child,
    port: (listener) => {
      const port = ports.get(listener);
      if (port === undefined) throw new Error(`no listener ${listener}`);
      return port;
    },
    stat: async (name) => {
      const text = await admin(`/stats?filter=^${name.replaceAll(".", "\\.")}$`);
      const [, digits] = /: (\d+)$/m.exec(text) ?? [];
      return digits === undefined ? undefined : Number(digits);
    },
    admin,
    // It has nothing to hand over and would take two seconds to end by itself.
    stop: async () => {
      child.kill("SIGKILL");
      await child.exit;
    },
  };
}
