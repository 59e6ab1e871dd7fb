// Writes config/rules.schema.json, the rule grammar for editors, from the table that the parser uses. `npm run gen`.
import { writeFileSync } from "node:fs";
import { rulesSchema } from "../src/rules/json-schema.ts";

writeFileSync(
  new URL("../config/rules.schema.json", import.meta.url),
  `${JSON.stringify(rulesSchema(), undefined, 2)}\n`,
);
