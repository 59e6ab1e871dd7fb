// weir serve: settings from the environment, start, signals, stop.
import { type App, startApp, storeKind } from "../app.ts";
import { createLogger } from "../logger.ts";
import { readSettings, type Settings } from "../settings.ts";
import { exampleCall } from "./example-call.ts";
import { VERSION } from "./version.ts";

/** Runs until a signal ends it. Sets the exit code 1 when it cannot start. */
export async function serve(): Promise<void> {
  const read = readSettings(process.env);
  if ("problems" in read) {
    for (const problem of read.problems) process.stderr.write(`weir: ${problem}\n`);
    process.exitCode = 1;
    return;
  }
  const { settings, warnings } = read;
  const logger = createLogger(settings);
  for (const warning of warnings) logger.warn(warning);
  try {
    const app = await startApp(settings, logger);
    stopOnSignals(app);
    process.stdout.write(startLines(settings, app));
  } catch (error) {
    process.stderr.write(`weir: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}

/** What is said at any log level. */
function startLines(settings: Settings, app: App): string {
  const inMemory = storeKind(settings) === "memory";
  const { http, grpc, debug } = app.addresses;
  const lines = [
    `weir: version ${VERSION}, counters ${inMemory ? "in this process's memory (Redis would share them)" : "in Redis"}`,
    `weir: http listening on ${http}`,
    `weir: grpc listening on ${grpc}`,
    `weir: debug listening on ${debug}`,
  ];
  const tree = app.tree();
  const call = inMemory && tree !== undefined ? exampleCall(tree, http) : undefined;
  if (call !== undefined) lines.push("weir: to see a 429, run", `  ${call}`);
  return `${lines.join("\n")}\n`;
}

/** Ctrl-C under npm arrives twice, from the terminal and from npm: within this time it is one. Milliseconds. */
const SAME_INTERRUPT_MS = 100;

/** The first signal stops gracefully, a second one ends the process at once. */
function stopOnSignals(app: App): void {
  let firstMs: number | undefined;
  const stop = (signal: NodeJS.Signals): void => {
    const nowMs = performance.now();
    if (firstMs === undefined) {
      firstMs = nowMs;
      void app.stop().then(() => process.exit(0));
    } else if (signal !== "SIGINT" || nowMs - firstMs > SAME_INTERRUPT_MS) {
      process.exit(1);
    }
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  process.on("SIGHUP", app.reload);
}
