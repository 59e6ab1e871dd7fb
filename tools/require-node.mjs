// Preloaded by `npm start`: says so clearly when the Node that runs is too old for weir's TypeScript sources, and keeps
// what Node makes of them, so that the next start is faster.
import * as module from "node:module";
import { fileURLToPath } from "node:url";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 18)) {
  process.stderr.write(
    `weir needs Node 22.18 or newer and this is Node ${process.versions.node}.\n` +
      "The right one comes with the dev dependencies: run `npm ci` and start weir by an npm script.\n" +
      "If npm skipped install scripts, run `npm rebuild node`.\n",
  );
  process.exit(1);
}
module.enableCompileCache(fileURLToPath(new URL("../node_modules/.cache/node", import.meta.url)));
